package scenario

import (
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// NewAllocatable is New with devices that count as the node's CPUs and memory, which the
// feature gate DRANodeAllocatableResources is for: zones by what is consumed of them,
// some others by the piece or with what their pods need besides. Devices of kind gpu do
// not, for containers ask for them as extended resources, on which the scheduler then
// gives up, or not, by the node that it happened to take. Devices for all nodes do not:
// the API server takes such only if every node of the cluster knows the feature.
func NewAllocatable(name string, seed uint64) Scenario {
	s := New(name, seed)
	m := maker{rand.New(rand.NewPCG(seed, 1)), &s}
	for _, node := range s.Nodes {
		node.Status.DeclaredFeatures = []string{"DRANodeAllocatableResources"} // as a kubelet does
	}
	for _, slice := range s.Slices {
		if slice.Spec.NodeName == nil {
			continue
		}
		for i := range slice.Spec.Devices {
			m.count(&slice.Spec.Devices[i])
		}
	}
	return s
}

func (m maker) count(device *resourceapi.Device) {
	add := func(name corev1.ResourceName, counts resourceapi.NodeAllocatableResource) {
		if device.NodeAllocatableResources == nil {
			device.NodeAllocatableResources = make(map[corev1.ResourceName]resourceapi.NodeAllocatableResource)
		}
		device.NodeAllocatableResources[name] = counts
	}
	switch kind := device.Attributes["kind"].StringValue; {
	case kind != nil && *kind == "gpu":
	case strings.HasPrefix(device.Name, "zone-"):
		for _, name := range []resourceapi.QualifiedName{"cpu", "memory"} {
			if _, has := device.Capacity[name]; !has {
				continue
			}
			add(corev1.ResourceName(name), resourceapi.NodeAllocatableResource{Mapping: &resourceapi.NodeAllocatableMapping{
				CapacityKey: ptr.To(name), CapacityMultiplier: ptr.To(quantity(pick(m, "1", "1", "1", "0.5"))),
			}})
		}
	case m.chance(3):
		add(corev1.ResourceCPU, resourceapi.NodeAllocatableResource{Mapping: &resourceapi.NodeAllocatableMapping{
			DeviceMultiplier: ptr.To(quantity(pick(m, "1", "3"))),
		}})
	case m.chance(3):
		overhead := &resourceapi.NodeAllocatableOverhead{PerContainer: ptr.To(quantity("500m"))}
		if m.chance(2) {
			overhead.PerPod = ptr.To(quantity("1"))
		}
		add(corev1.ResourceCPU, resourceapi.NodeAllocatableResource{Overhead: overhead})
	}
}
