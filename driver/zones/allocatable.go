package zones

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// This file makes the scheduler count claims in the node's allocatable (KEP-5517,
// alpha). A device says which of its capacities are the node's CPUs, memory and
// hugepages. Kubernetes 1.36 had other fields, and its API server drops these. They may
// change again, so nothing else in the driver sets them.

// withAllocatable maps the capacities that are part of a resource of the node, one to one.
func withAllocatable(device resourceapi.Device) resourceapi.Device {
	device.NodeAllocatableResources = make(map[corev1.ResourceName]resourceapi.NodeAllocatableResource, len(device.Capacity))
	for key := range device.Capacity {
		name := corev1.ResourceName(key)
		size, huge := strings.CutPrefix(string(key), deviceclasses.CapacityHugepagesPrefix)
		switch {
		case huge:
			name = corev1.ResourceName(corev1.ResourceHugePagesPrefix + size)
		case key != deviceclasses.CapacityCPU && key != deviceclasses.CapacityMemory:
			continue // a group, which is no resource: the API server would refuse the slice
		}
		device.NodeAllocatableResources[name] = resourceapi.NodeAllocatableResource{Mapping: &resourceapi.NodeAllocatableMapping{
			CapacityKey:        ptr.To(key),
			CapacityMultiplier: resource.NewQuantity(1, resource.DecimalSI),
		}}
	}
	return device
}

// AllocatableSample returns a device whose capacity counts in the node's allocatable.
// An API server whose feature gate DRANodeAllocatableResources is off drops the mapping
// when it stores the device. KeepsAllocatable detects that.
func AllocatableSample() resourceapi.Device {
	return withAllocatable(resourceapi.Device{
		Name:     "sample",
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{deviceclasses.CapacityCPU: {Value: *resource.NewQuantity(1, resource.DecimalSI)}},
	})
}

// KeepsAllocatable reports whether the stored form of AllocatableSample still has the
// mapping.
func KeepsAllocatable(stored resourceapi.Device) bool {
	cpu := stored.NodeAllocatableResources[corev1.ResourceCPU]
	return cpu.Mapping != nil && ptr.Equal(cpu.Mapping.CapacityKey, ptr.To(deviceclasses.CapacityCPU)) && cpu.Mapping.CapacityMultiplier != nil
}
