package numa

import (
	"path"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// pciZone returns the zone that a function is local to, from the first source that tells:
//
//  1. the NUMA node of the function, then of its physical function, then of the bridges
//     above it;
//  2. the CPUs that are local to its root bus, then those that are local to the
//     function;
//  3. the only zone of a machine that has one zone.
//
// It is nil if no source tells, or if the NUMA node is not online.
func (t tree) pciZone(folder string, m *Machine) (*int, error) {
	parents, buses := pciParents(folder)
	for _, place := range append([]string{folder, folder + "/physfn"}, parents...) {
		node, found, err := parseFile(t, place+"/numa_node", parseInt)
		if err != nil {
			return nil, err
		}
		if found && node >= 0 {
			if _, online := m.Zone(node); !online {
				return nil, nil
			}
			return &node, nil
		}
	}
	for _, bus := range buses {
		cpus, err := t.set(bus+"/cpulistaffinity", bus+"/cpuaffinity")
		if err != nil {
			return nil, err
		}
		if zone := zoneWithAll(cpus, m); zone != nil {
			return zone, nil
		}
	}
	cpus, err := t.set(folder+"/local_cpulist", folder+"/local_cpus")
	if err != nil {
		return nil, err
	}
	if zone := zoneWithAll(cpus, m); zone != nil {
		return zone, nil
	}
	if len(m.Zones) == 1 {
		return new(m.Zones[0].ID), nil
	}
	return nil, nil
}

// pciParents returns the folders of the bridges above a function and of its root buses,
// the nearest first. A function behind a VMD has two root buses above it.
func pciParents(folder string) (bridges, buses []string) {
	for parent := path.Dir(folder); parent != "."; parent = path.Dir(parent) {
		switch name := path.Base(parent); {
		case IsPCIAddress(name):
			bridges = append(bridges, parent)
		case isRootBus(name):
			buses = append(buses, parent+"/pci_bus/"+name[len("pci"):])
		}
	}
	return bridges, buses
}

// zoneWithAll returns the zone that contains all online CPUs of the set, or nil. If the
// kernel does not know where a function is, it lists all CPUs of the machine.
func zoneWithAll(cpus cpuset.Set, m *Machine) *int {
	cpus = cpus.Intersection(m.Online)
	for i := range m.Zones {
		if !cpus.IsEmpty() && cpus.IsSubsetOf(m.Zones[i].CPUs) {
			return new(m.Zones[i].ID)
		}
	}
	return nil
}
