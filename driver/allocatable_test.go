package driver

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
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

// The driver is open before the daemon can ask the API server.
func TestAnOpenDriverMapsCapacitiesOnceItIsTold(t *testing.T) {
	d := newDisk(t).open()
	for _, want := range []bool{false, true} {
		d.SetGates(func(g *Gates) { g.NodeAllocatable = want })
		for _, device := range d.Publish(nil, cpuset.Set{}).Devices {
			if got := device.NodeAllocatableResources != nil; got != want {
				t.Errorf("%s maps capacities: %t, want %t", device.Name, got, want)
			}
		}
	}
}
