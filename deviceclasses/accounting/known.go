package accounting

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/capacity"
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
// drivers.
func StepsOf(published []*resourceapi.ResourceSlice) Steps {
	steps := Steps{}
	for _, slice := range published {
		if slice.Spec.Driver != deviceclasses.DriverName {
			continue
		}
		for _, device := range slice.Spec.Devices {
			if kind := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeKind).StringValue; kind != nil && *kind == deviceclasses.KindCache {
				continue
			}
			for key, capacity := range device.Capacity {
				largest, step := steps[key], resource.Quantity{}
				if policy := capacity.RequestPolicy; policy != nil && policy.ValidRange != nil && policy.ValidRange.Step != nil {
					step = *policy.ValidRange.Step
				}
				if step.Cmp(largest) > 0 {
					largest = step
				}
				steps[key] = largest
			}
		}
	}
	return steps
}

// round rounds a request up, as the scheduler does on the zone with the largest step. So
// the sum is never less than what the claim holds. A CPU is never split.
func (s Steps) round(key resourceapi.QualifiedName, amount resource.Quantity) resource.Quantity {
	step := whole(s[key])
	if size, huge := strings.CutPrefix(string(key), hugepages); huge && step == 0 {
		if page, err := resource.ParseQuantity(size); err == nil && capacity.Countable(page) {
			step = whole(page)
		}
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
	case key == "cpu" || key == "memory":
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
