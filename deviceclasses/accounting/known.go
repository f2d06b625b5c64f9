package accounting

import (
	"iter"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Known looks up objects, in a cluster or in files. The objects must not be changed. All
// functions may be called at any time, by several goroutines.
type Known interface {
	// DeviceClass returns nil if there is no class of this name. So do the functions
	// below.
	DeviceClass(name string) *resourceapi.DeviceClass
	ResourceClaim(namespace, name string) *resourceapi.ResourceClaim
	ResourceClaimTemplate(namespace, name string) *resourceapi.ResourceClaimTemplate
	// Steps may be empty if the zones of the nodes are not known.
	Steps() Steps
	// Selectors evaluates the selectors of classes and requests. All calls return the
	// same, so that a selector is compiled once.
	Selectors() *probe.Selectors
}

// Steps are the largest steps in which zones give their capacities, by the name of the
// capacity. They include every capacity that a zone publishes.
type Steps map[resourceapi.QualifiedName]resource.Quantity

// StepsOf are the steps of the zones in slices. It ignores caches, and slices of other
// drivers. A step counts at most as much as the zone has, and as much as a zone can give in
// one step: a node that publishes something else must not raise the requests of all pods.
func StepsOf(published []*resourceapi.ResourceSlice) Steps {
	steps := Steps{}
	for device := range Zones(published) {
		for key, has := range device.Capacity {
			largest, step := steps[key], resource.Quantity{}
			if policy := has.RequestPolicy; policy != nil && policy.ValidRange != nil && policy.ValidRange.Step != nil {
				step = least(*policy.ValidRange.Step, has.Value, LargestStep(key))
			}
			if step.Cmp(largest) > 0 {
				largest = step
			}
			steps[key] = largest
		}
	}
	return steps
}

// Zones are the zones in slices that have something to give.
func Zones(published []*resourceapi.ResourceSlice) iter.Seq[*resourceapi.Device] {
	return func(yield func(*resourceapi.Device) bool) {
		for _, slice := range published {
			if slice.Spec.Driver != deviceclasses.DriverName {
				continue
			}
			for i := range slice.Spec.Devices {
				device := &slice.Spec.Devices[i]
				kind := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeKind).StringValue
				if (kind == nil || *kind != deviceclasses.KindCache) && len(device.Capacity) > 0 && !yield(device) {
					return
				}
			}
		}
	}
}

// ServerCounts reports whether the scheduler counts all claims for zones by itself: there
// are zones, and each maps its capacities to resources of its node (KEP-5517).
func ServerCounts(published []*resourceapi.ResourceSlice) bool {
	counts := false
	for device := range Zones(published) {
		if len(device.NodeAllocatableResources) == 0 {
			return false
		}
		counts = true
	}
	return counts
}

// LargestStep is the largest step in which a zone can give a capacity: the threads of a core,
// of which no processor has more than 8, a mebibyte, or a page. It is 0 for other
// capacities.
func LargestStep(key resourceapi.QualifiedName) resource.Quantity {
	switch key {
	case deviceclasses.CapacityCPU:
		return *resource.NewQuantity(8, resource.DecimalSI)
	case deviceclasses.CapacityMemory:
		return *resource.NewQuantity(1<<20, resource.BinarySI)
	}
	return *resource.NewQuantity(pageBytes(key), resource.BinarySI)
}

// pageBytes is the size of the hugepages that the capacity is of; 0 for other capacities.
func pageBytes(key resourceapi.QualifiedName) int64 {
	if size, huge := strings.CutPrefix(string(key), hugepages); huge {
		if page, err := resource.ParseQuantity(size); err == nil && spelling.Countable(page) {
			return whole(page)
		}
	}
	return 0
}

// least is the smallest of some amounts. A step that nobody can count is none.
func least(amounts ...resource.Quantity) (least resource.Quantity) {
	for i, amount := range amounts {
		if !spelling.Countable(amount) {
			return resource.Quantity{}
		}
		if i == 0 || amount.Cmp(least) < 0 {
			least = amount
		}
	}
	return least
}

// round rounds a request up, as the scheduler does on the zone with the largest step. So
// the sum is never less than what the claim holds. A CPU is never split.
func (s Steps) round(key resourceapi.QualifiedName, amount resource.Quantity) resource.Quantity {
	step := whole(s[key])
	if step == 0 {
		step = pageBytes(key)
	}
	step = max(step, 1)
	steps := whole(amount) / step
	if steps*step < whole(amount) {
		steps++
	}
	if steps > mostNumber/step {
		return *resource.NewQuantity(mostNumber, amount.Format)
	}
	return *resource.NewQuantity(steps*step, amount.Format)
}

const (
	hugepages      = deviceclasses.CapacityHugepagesPrefix // of a capacity, hugepages2Mi
	hugepagesOfPod = corev1.ResourceHugePagesPrefix        // of a pod, hugepages-2Mi
)

// resourceOf returns the name in a pod for a capacity of a zone.
func resourceOf(key resourceapi.QualifiedName) (name corev1.ResourceName, known bool) {
	size, huge := strings.CutPrefix(string(key), hugepages)
	switch {
	case key == deviceclasses.CapacityCPU || key == deviceclasses.CapacityMemory:
		return corev1.ResourceName(key), true
	case huge:
		page, err := resource.ParseQuantity(size)
		signed := strings.ContainsAny(size, "+-") // of hugepages-2Mi, which a pod says
		return corev1.ResourceName(hugepagesOfPod + size), err == nil && page.Sign() > 0 && !signed
	}
	return "", false
}

// IsCapacity reports whether zones have capacities with this name, as a claim must spell
// it.
func IsCapacity(key resourceapi.QualifiedName) bool {
	_, known := resourceOf(key)
	return known
}
