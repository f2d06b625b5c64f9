package zones

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// What is here has the scheduler count claims in the node's allocatable
// (KEP-5517, alpha): a device says which of its capacities are the node's CPUs,
// memory and hugepages. The fields were others in 1.36, whose API server drops these,
// and may be others again: nothing else in the driver knows them.

// withAllocatable maps each capacity that is a resource of the node, one to one.
func withAllocatable(device resourceapi.Device) resourceapi.Device {
	device.NodeAllocatableResources = make(map[corev1.ResourceName]resourceapi.NodeAllocatableResource, len(device.Capacity))
	for key := range device.Capacity {
		name := corev1.ResourceName(key)
		if size, huge := strings.CutPrefix(string(key), deviceclasses.CapacityHugepagesPrefix); huge {
			name = corev1.ResourceName(corev1.ResourceHugePagesPrefix + size)
		}
		device.NodeAllocatableResources[name] = resourceapi.NodeAllocatableResource{Mapping: &resourceapi.NodeAllocatableMapping{
			CapacityKey:        ptr.To(key),
			CapacityMultiplier: resource.NewQuantity(1, resource.DecimalSI),
		}}
	}
	return device
}

// AllocatableSample is a device whose capacity counts in the node's allocatable:
// an API server whose feature gate DRANodeAllocatableResources is off stores
// another one, which KeepsAllocatable tells.
func AllocatableSample() resourceapi.Device {
	return withAllocatable(resourceapi.Device{
		Name:     "sample",
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{deviceclasses.CapacityCPU: {Value: *resource.NewQuantity(1, resource.DecimalSI)}},
	})
}

// KeepsAllocatable reports whether the stored form of AllocatableSample still has
// what it is about.
func KeepsAllocatable(stored resourceapi.Device) bool {
	cpu := stored.NodeAllocatableResources[corev1.ResourceCPU]
	return cpu.Mapping != nil && ptr.Equal(cpu.Mapping.CapacityKey, ptr.To(deviceclasses.CapacityCPU)) && cpu.Mapping.CapacityMultiplier != nil
}
