package apiserver

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// recorded reads every recorded machine; it skips the test where there are none.
func recorded(t *testing.T) map[string]numa.Machine {
	t.Helper()
	all := map[string]numa.Machine{}
	for _, archive := range files.RecordedMachines(t) {
		all[archive.Name] = sample.Recorded(t, archive)
	}
	return all
}

// rigMachine is the node that the test rig starts by default: 2 sockets, 4
// zones of 2 cores with 2 threads each.
func rigMachine() numa.Machine {
	var m numa.Machine
	for id := range 4 {
		zone := numa.Zone{
			ID:          id,
			Sockets:     []int{id / 2},
			MemoryBytes: new(uint64(1 << 30)),
			Watermarks:  &numa.Watermarks{HighBytes: 12 << 20},
			Hugepages:   []numa.Hugepages{{PageBytes: 2 << 20, TotalPages: 8, FreePages: new(uint64(8))}, {PageBytes: 1 << 30}},
			CoreType:    numa.StandardCores,
		}
		for core := range 2 {
			first := 4*id + 2*core
			cpus := cpuset.New(first, first+1)
			m.Cores = append(m.Cores, numa.Core{Socket: new(id / 2), Die: new(id % 2), ID: new(core), Zone: id, CPUs: cpus})
			zone.CPUs = zone.CPUs.Union(cpus)
		}
		m.Zones = append(m.Zones, zone)
		m.Online = m.Online.Union(zone.CPUs)
	}
	return m
}
