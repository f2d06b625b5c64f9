package driver

import (
	"fmt"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

func TestEveryCapacityCountsInTheNodesAllocatable(t *testing.T) {
	config := testConfig()
	for _, device := range Devices(testMachine(), config, nil) {
		if device.NodeAllocatableResources != nil {
			t.Errorf("%s maps capacities, but the API server would drop that", device.Name)
		}
	}
	config.NodeAllocatable = true
	for _, device := range Devices(testMachine(), config, nil) {
		var got []string
		for name, mapped := range device.NodeAllocatableResources {
			got = append(got, fmt.Sprintf("%s=%s*%s", name, *mapped.Mapping.CapacityKey, mapped.Mapping.CapacityMultiplier))
		}
		slices.Sort(got)
		want := []string{"cpu=cpu*1", "hugepages-2Mi=hugepages2Mi*1", "memory=memory*1"}
		if device.Name == "numa-2" {
			want = want[2:]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s maps %q, want %q", device.Name, got, want)
		}
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
