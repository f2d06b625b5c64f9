package zones

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// The API server refuses a device that maps a capacity to what a node cannot have of it.
func TestGroupsAreNoResourceOfTheNode(t *testing.T) {
	mapped := withAllocatable(resourceapi.Device{Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		deviceclasses.CapacityCPU: {}, deviceclasses.CapacityMemory: {}, hugepagesName(2 << 20): {}, deviceclasses.GroupCapacity("kafka"): {},
	}}).NodeAllocatableResources
	names := slices.Sorted(maps.Keys(mapped))
	if want := []corev1.ResourceName{"cpu", "hugepages-2Mi", "memory"}; !slices.Equal(names, want) {
		t.Errorf("mapped are %q, want %q", names, want)
	}
}

func TestSampleShowsWhetherMappingsAreKept(t *testing.T) {
	sample := AllocatableSample()
	if !KeepsAllocatable(sample) {
		t.Errorf("the sample itself has no mapping: %+v", sample)
	}
	for name, drop := range map[string]func(*resourceapi.Device){
		"all":      func(d *resourceapi.Device) { d.NodeAllocatableResources = nil },
		"mapping":  func(d *resourceapi.Device) { d.NodeAllocatableResources["cpu"] = resourceapi.NodeAllocatableResource{} },
		"key":      func(d *resourceapi.Device) { d.NodeAllocatableResources["cpu"].Mapping.CapacityKey = nil },
		"multiple": func(d *resourceapi.Device) { d.NodeAllocatableResources["cpu"].Mapping.CapacityMultiplier = nil },
	} {
		dropped := AllocatableSample()
		drop(&dropped)
		if KeepsAllocatable(dropped) {
			t.Errorf("%s is dropped, which goes unnoticed", name)
		}
	}
}
