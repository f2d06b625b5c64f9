package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// addMore adds what nodes of this driver have besides: memory without CPUs, groups, another
// order of zones, pages of 2Mi, versions, pools of caches, and pods that are nobody's concern.
// It has random numbers of its own, so that the rest of a scenario is the same without it.
func (m maker) addMore(seed uint64) {
	m.Rand = rand.New(rand.NewPCG(seed, 3))
	for _, slice := range m.Slices {
		if slice.Spec.NodeName != nil && len(slice.Spec.Devices) > 0 {
			slice.Spec.Devices = m.moreDevices(slice.Spec.Devices)
		}
	}
	m.Classes = append(m.Classes, &resourceapi.DeviceClass{
		TypeMeta: typeMeta("DeviceClass"), ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-cache"},
		Spec: resourceapi.DeviceClassSpec{Selectors: selector(fmt.Sprintf("device.driver == %q && device.attributes[%q].kind == \"cache\"", m.driver(), m.driver()))},
	})
	for _, claim := range m.Claims {
		m.moreRequests(&claim.Spec.Devices)
	}
	for _, template := range m.Templates {
		m.moreRequests(&template.Spec.Spec.Devices)
	}
	for _, node := range m.Nodes {
		m.addOther(node.Name)
	}
}

func isZone(device resourceapi.Device) bool { return strings.HasPrefix(device.Name, "zone-") }

// moreDevices changes zones, which are side by side, and adds devices behind them.
func (m maker) moreDevices(devices []resourceapi.Device) []resourceapi.Device {
	first, zones := -1, 0
	for i := range devices {
		if isZone(devices[i]) {
			if zones++; first < 0 {
				first = i
			}
		}
	}
	if zones == 0 {
		return devices
	}
	list, memory := devices[first:first+zones:first+zones], m.chance(3)
	for i := range list {
		zone := &list[i]
		id := *zone.Attributes[numaNode].IntValue
		if memory {
			zone.Attributes["nearest"] = resourceapi.DeviceAttribute{IntValue: &id}
		}
		if m.chance(3) {
			zone.Capacity["groupBroker"] = stepped("1", "1")
		}
		if m.chance(3) {
			zone.Capacity["hugepages2Mi"] = stepped(pick(m, "64Mi", "1Gi"), "2Mi")
		}
		if m.chance(2) {
			zone.Attributes["firmware"] = resourceapi.DeviceAttribute{VersionValue: ptr.To(pick(m, "1.2.0", "1.10.0", "2.0.0-rc.1", "2.0.0"))}
		}
		zone.Attributes["l3"] = intAttribute(int(id))
	}
	more := list
	if m.chance(3) {
		m.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	if memory {
		far := resourceapi.Device{
			Name: fmt.Sprintf("zone-%d", zones), AllowMultipleAllocations: ptr.To(true),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": stringAttribute("zone"), numaNode: intAttribute(zones)},
			Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": stepped("32Gi", "1Mi")},
		}
		if !m.chance(4) {
			far.Attributes["nearest"] = intAttribute(m.IntN(zones))
		}
		more = append([]resourceapi.Device{}, append(list, far)...)
	}
	if m.chance(3) {
		for id := range zones {
			more = append(more, m.cache(id))
		}
	}
	return append(append(append([]resourceapi.Device{}, devices[:first]...), more...), devices[first+zones:]...)
}

// cache is the pool of a level-3 cache: claims have ways of it, and one class of the kernel.
func (m maker) cache(id int) resourceapi.Device {
	one := quantity("1")
	classes := stepped("3", "1")
	classes.RequestPolicy.Default, classes.RequestPolicy.ValidRange.Min, classes.RequestPolicy.ValidRange.Max = &one, &one, &one
	ways := stepped(pick(m, "4", "7"), "1")
	ways.RequestPolicy.Default, ways.RequestPolicy.ValidRange.Min = &one, &one
	return resourceapi.Device{
		Name: fmt.Sprintf("cache-%d", id), AllowMultipleAllocations: ptr.To(true),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": stringAttribute("cache"), numaNode: intAttribute(id), "l3": intAttribute(id)},
		Capacity:   map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"ways": ways, "classes": classes},
	}
}

// stepped is a capacity of which a claim gets none unless it asks for some.
func stepped(value, step string) resourceapi.DeviceCapacity {
	zero, one := quantity("0"), quantity(step)
	return resourceapi.DeviceCapacity{Value: quantity(value), RequestPolicy: &resourceapi.CapacityRequestPolicy{
		Default: &zero, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &zero, Step: &one},
	}}
}

func selector(expression string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
}

// moreRequests changes requests for zones, and adds some.
func (m maker) moreRequests(devices *resourceapi.DeviceClaim) {
	zone := ""
	for i := range devices.Requests {
		request := &devices.Requests[i]
		if exact := request.Exactly; exact != nil && exact.DeviceClassName == m.Name+"-zone" {
			m.moreOfZone(exact.Capacity, &exact.Selectors)
			if exact.Count == 1 {
				zone = request.Name
			}
		}
		for j := range request.FirstAvailable {
			if sub := &request.FirstAvailable[j]; sub.DeviceClassName == m.Name+"-zone" {
				m.moreOfZone(sub.Capacity, &sub.Selectors)
			}
		}
	}
	add := func(name, class, attribute string, requests map[resourceapi.QualifiedName]quantityType) {
		devices.Requests = append(devices.Requests, resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: m.Name + "-" + class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			Capacity: &resourceapi.CapacityRequirements{Requests: requests},
		}})
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{
			Requests: []string{zone, name}, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(m.driver() + "/" + attribute)),
		})
	}
	if zone != "" && m.chance(6) {
		add("ways", "cache", "l3", map[resourceapi.QualifiedName]quantityType{"ways": count(1 + m.IntN(5))})
	}
	if zone != "" && m.chance(6) {
		add("far", "zone", "nearest", map[resourceapi.QualifiedName]quantityType{"memory": quantity(pick(m, "1Gi", "12Gi", "20Gi"))})
	}
	if m.chance(8) {
		m.addPairs(devices)
	}
}

func (m maker) moreOfZone(capacity *resourceapi.CapacityRequirements, selectors *[]resourceapi.DeviceSelector) {
	if m.chance(5) {
		capacity.Requests["groupBroker"] = quantity("1")
	}
	if m.chance(5) {
		capacity.Requests["hugepages2Mi"] = quantity(pick(m, "2Mi", "3Mi", "64Mi", "512Mi"))
	}
	if m.chance(6) {
		*selectors = append(*selectors, selector(pick(m,
			fmt.Sprintf(`device.capacity[%q].?cpu.orValue(quantity("0")).compareTo(quantity("%d")) >= 0`, m.driver(), 2+m.IntN(12)),
			fmt.Sprintf(`device.capacity[%q].?memory.orValue(quantity("0")).isGreaterThan(quantity("%s"))`, m.driver(), pick(m, "4Gi", "8Gi")),
			fmt.Sprintf(`device.attributes[%q].?firmware.orValue(semver("0.1.0")).compareTo(semver("%s")) >= 0`, m.driver(), pick(m, "1.2.0", "1.9.0", "2.0.0")),
			fmt.Sprintf(`device.attributes[%q].?firmware.hasValue() && device.attributes[%q].firmware.isLessThan(semver("2.0.0"))`, m.driver(), m.driver()),
		))...)
	}
}

// addPairs adds two requests with two and three alternatives, which the scheduler tries in six
// pairs, the first alternative of the first request longest.
func (m maker) addPairs(devices *resourceapi.DeviceClaim) {
	for i, alternatives := range []int{2, 3} {
		request := resourceapi.DeviceRequest{Name: fmt.Sprintf("pair%d", i)}
		for j := range alternatives {
			request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
				Name: fmt.Sprintf("s%d", j), DeviceClassName: m.Name + "-zone", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
				Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]quantityType{"cpu": count(2 * (4 - j) * (1 + m.IntN(2)))}},
			})
		}
		devices.Requests = append(devices.Requests, request)
	}
	if m.chance(2) {
		match := resourceapi.FullyQualifiedName(m.driver() + "/socket")
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: []string{"pair0", "pair1"}, MatchAttribute: &match})
	}
}

// addOther adds a pod of the node that runs, has ended, or is being deleted.
func (m maker) addOther(node string) {
	if !m.chance(2) {
		return
	}
	pod := &corev1.Pod{
		TypeMeta:   typeMeta("Pod"),
		ObjectMeta: metav1.ObjectMeta{Name: node + "-other", Namespace: m.Namespace},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Image: "none",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: count(2 + m.IntN(6))}},
		}}},
	}
	switch m.IntN(3) {
	case 0:
		pod.Status.Phase = pick(m, corev1.PodSucceeded, corev1.PodFailed)
	case 1:
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)))
	}
	m.Others = append(m.Others, pod)
}
