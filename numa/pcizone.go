package numa

import (
	"path"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// pciZone returns the zone that a function is local to: by its own NUMA node, else that of its physical function or of
// the bridges above it, else by the CPUs that are local to its root bus or to itself; on a machine of one zone it is
// that. It is nil where nothing tells, and where the node is not online.
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

// pciParents returns the folders of the bridges above a function, and those of the root buses; the nearest first. There
// are two buses above a function behind a VMD.
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

// zoneWithAll returns the zone that has all of the CPUs that are online. The kernel lists all CPUs of the machine for a
// function of which it knows nothing.
func zoneWithAll(cpus cpuset.Set, m *Machine) *int {
	cpus = cpus.Intersection(m.Online)
	for i := range m.Zones {
		if !cpus.IsEmpty() && cpus.IsSubsetOf(m.Zones[i].CPUs) {
			return new(m.Zones[i].ID)
		}
	}
	return nil
}
