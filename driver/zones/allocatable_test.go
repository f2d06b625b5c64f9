package zones

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

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
