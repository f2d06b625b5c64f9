package hwloc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// kind is what a fact is about.
type kind string

const (
	onlineCPUs   kind = "online CPUs"
	strayCPUs    kind = "online CPUs in no zone"
	zones        kind = "zones"
	zoneCPUs     kind = "CPUs that are local to a zone"
	zoneMemory   kind = "bytes of a zone"
	hugepages    kind = "hugepages of a zone"
	distances    kind = "distances"
	sockets      kind = "sockets"
	cores        kind = "cores"
	l2s          kind = "L2s"
	l3s          kind = "L3s"
	functions    kind = "PCI functions"
	functionCPUs kind = "CPUs that are local to a PCI function"
)

// facts are what one side says of a machine, each in a word that both would
// use. Several may say the same.
type facts map[kind][]string

func (f facts) add(about kind, format string, values ...any) {
	f[about] = append(f[about], fmt.Sprintf(format, values...))
}

// without returns the facts about a kind that others does not have, in one line.
func (f facts) without(others facts, about kind) string {
	left := slices.Clone(f[about])
	for _, fact := range others[about] {
		if i := slices.Index(left, fact); i >= 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	slices.SortFunc(left, func(a, b string) int { return cmp.Or(cmp.Compare(leading(a), leading(b)), cmp.Compare(a, b)) })
	return strings.Join(left, " ")
}

// leading is the number that the fact begins with.
func leading(fact string) (number int) {
	if _, err := fmt.Sscan(fact, &number); err != nil {
		return 0 // it begins with a list
	}
	return number
}

// factsOf lists what the reader says.
func factsOf(m numa.Machine) facts {
	found := facts{}
	var inZones cpuset.Set
	for _, zone := range m.Zones {
		inZones = inZones.Union(zone.CPUs)
		found.add(zones, "%d", zone.ID)
		found.add(zoneCPUs, "%d=%s", zone.ID, localCPUs(m, zone))
		if zone.MemoryBytes != nil {
			found.add(zoneMemory, "%d=%d", zone.ID, *zone.MemoryBytes)
		}
		for _, pool := range zone.Hugepages {
			found.add(hugepages, "%d:%d=%d", zone.ID, pool.PageBytes, pool.TotalPages)
		}
		for _, distance := range zone.Distances {
			if len(m.Zones) == 1 {
				continue // hwloc keeps no matrix of one node
			}
			found.add(distances, "%d-%d=%d", zone.ID, distance.Zone, distance.Value)
		}
	}
	found.add(onlineCPUs, "%s", m.Online)
	found.add(strayCPUs, "%s", m.Online.Difference(inZones))
	bySocket := map[int]cpuset.Set{}
	for _, core := range m.Cores {
		found.add(cores, "%s", core.CPUs)
		if core.Socket != nil {
			bySocket[*core.Socket] = bySocket[*core.Socket].Union(core.CPUs)
		}
	}
	for id, cpus := range bySocket {
		found.add(sockets, "%s=%d", cpus, id)
	}
	for _, l2 := range m.L2s {
		found.add(l2s, "%s", l2.CPUs)
	}
	for _, l3 := range m.L3s {
		found.add(l3s, "%s", l3.CPUs)
	}
	for _, function := range m.PCI {
		found.add(functions, "%s=%04x:%04x:%04x", function.Address, known(function.Class)>>8, known(function.Vendor), known(function.Device))
		local := m.Online
		if function.Zone != nil {
			zone, _ := m.Zone(*function.Zone)
			local = localCPUs(m, zone)
		}
		found.add(functionCPUs, "%s=%s", function.Address, local)
	}
	return found
}

// known is a number as hwloc has it, which writes 0 for what it does not know.
func known[T uint16 | uint32](number *T) T {
	if number == nil {
		return 0
	}
	return *number
}

// localCPUs are the zone's own or else those of the nearest zone, which hwloc
// gives to a node without CPUs.
func localCPUs(m numa.Machine, zone numa.Zone) cpuset.Set {
	if zone.CPUs.IsEmpty() && zone.Nearest != nil {
		zone, _ = m.Zone(*zone.Nearest)
	}
	return zone.CPUs
}
