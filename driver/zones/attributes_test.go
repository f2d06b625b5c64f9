package zones

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestEveryAttributeHasAValue(t *testing.T) {
	values := Zone{Nodes: []int{0}}.values(&numa.Machine{Zones: []numa.Zone{{}}}, Settings{})
	for _, row := range deviceclasses.ZoneAttributes() {
		if _, has := values[row.Name]; has != (row.Same == "") {
			t.Errorf("%s has a value: %t", row.Name, has)
		}
		delete(values, row.Name)
	}
	for name := range values {
		t.Errorf("%s has a value, and is not in the table", name)
	}
}

// Memory without CPUs says which CPUs are near, if one NUMA node is nearest.
func TestNearestCPUsOfMemory(t *testing.T) {
	far := func(values ...int) (list []numa.Distance) {
		for zone, value := range values {
			list = append(list, numa.Distance{Zone: zone, Value: value})
		}
		return list
	}
	cpus := func(id, socket int) numa.Zone {
		return numa.Zone{ID: id, CPUs: cpuset.New(id), Sockets: []int{socket}, Kind: numa.CPUZone, Distances: far(10, 21, 21, 14)}
	}
	memory := func(kind numa.ZoneKind, in *int, distances ...int) numa.Zone {
		return numa.Zone{ID: 3, Kind: kind, CPUsIn: in, Distances: far(distances...)}
	}
	for name, row := range map[string]struct {
		sockets [3]int
		memory  numa.Zone
		by      string
		want    string
	}{
		"near one":                       {[3]int{0, 0, 1}, memory(numa.CXLZone, nil, 24, 14, 24, 10), "", "numa-0 near 0 on 0, numa-1 near 1 on 0, numa-2 near 2 on 1, numa-3 near 1 on 0"},
		"near two of one socket":         {[3]int{0, 0, 1}, memory(numa.CXLZone, nil, 14, 14, 24, 10), "", "numa-0 near 0 on 0, numa-1 near 1 on 0, numa-2 near 2 on 1, numa-3 near - on 0"},
		"near two sockets":               {[3]int{0, 1, 1}, memory(numa.MemoryZone, nil, 14, 14, 24, 10), "", "numa-0 near 0 on 0, numa-1 near 1 on 1, numa-2 near 2 on 1, numa-3 near - on -"},
		"no distances":                   {[3]int{0, 0, 1}, memory(numa.MemoryZone, nil), "", "numa-0 near 0 on 0, numa-1 near 1 on 0, numa-2 near 2 on 1, numa-3 near - on -"},
		"its CPUs are known (numa=fake)": {[3]int{0, 0, 1}, memory(numa.MemoryZone, new(2), 10, 10, 10, 10), "", "numa-0 near 0 on 0, numa-1 near 1 on 0, numa-2 near 2 on 1, numa-3 near 2 on 1"},
		"memory of a GPU":                {[3]int{0, 0, 1}, memory(numa.GPUZone, nil, 24, 14, 24, 10), "", "numa-0 near - on 0, numa-1 near - on 0, numa-2 near - on 1, numa-3 near - on -"},
		"by socket":                      {[3]int{0, 0, 1}, memory(numa.CXLZone, nil, 24, 14, 24, 10), deviceclasses.ZoneBySocket, "socket-0 near - on 0, socket-1 near 2 on 1, numa-3 near 1 on 0"},
		"by machine":                     {[3]int{0, 0, 1}, memory(numa.CXLZone, nil, 24, 14, 24, 10), deviceclasses.ZoneByMachine, "machine near - on -, numa-3 near 1 on 0"},
	} {
		machine := &numa.Machine{Zones: []numa.Zone{cpus(0, row.sockets[0]), cpus(1, row.sockets[1]), cpus(2, row.sockets[2]), row.memory}}
		zones := Of(machine, row.by)
		settings := Settings{memoryZones: slices.ContainsFunc(zones, func(z Zone) bool { return z.isMemory(machine) })}
		text := func(id *int) string {
			if id == nil {
				return "-"
			}
			return fmt.Sprint(*id)
		}
		var got []string
		for _, z := range zones {
			got = append(got, fmt.Sprintf("%s near %s on %s", z.Device, text(z.nearest(machine, settings)), text(z.socket(machine))))
		}
		if all := strings.Join(got, ", "); all != row.want {
			t.Errorf("%s: %s\nwant %s", name, all, row.want)
		}
	}
}
