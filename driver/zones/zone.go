// Package zones turns the CPUs, memory and hugepages of a machine into devices that
// claims can share: one for each NUMA node, socket or level-3 cache, or one for the
// machine, as the node is configured. It decides which zones there are, under which
// names, attributes and capacities, and in which order. It reads nothing and prepares
// nothing.
package zones

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Zone is what is published as one device: a NUMA node, several of them, the CPUs of one
// level-3 cache or of one type of cores, or the isolated CPUs of a NUMA node.
//
// Invariant: two zones of the same machine and the same zoneBy share no CPU.
type Zone struct {
	Device string     // name of the device
	Nodes  []int      // ids of its NUMA nodes, ascending, at least one
	CPUs   cpuset.Set // its online CPUs; empty for a zone with only memory
	L3     *int       // id of the level-3 cache that it is, if any; such a zone has no memory

	CoreType numa.CoreType // of its cores, if that is what makes it a zone; such a zone has no memory

	// Isolated says that the CPUs are those of the boot parameter isolcpus=. The kernel
	// moves no task to them by itself, and puts them only into isolated partitions. Claims
	// that do not ask for such CPUs must not get them. Such a zone has no memory.
	Isolated bool
}

func (z Zone) withoutMemory() bool { return z.L3 != nil || z.Isolated || z.CoreType != "" }

// Of returns the zones of a machine, in the order of their first NUMA nodes. by is the
// zoneBy of a NodeConfig; "" means a NUMA node. A NUMA node that has no CPUs, or is on
// several sockets, is in no zone of a socket. If the kernel lists CPUs of another NUMA node
// for it, as with numa=fake=, it is in the zone of those CPUs. A cache of several NUMA nodes
// is not a zone. Isolated CPUs are in a zone of their own for each NUMA node, and come last.
func Of(machine *numa.Machine, by string) []Zone {
	var zones, isolated []Zone
	for i := range machine.Zones {
		node := &machine.Zones[i]
		next := Zone{Device: coarseName(machine, node, by), Nodes: []int{node.ID}, CPUs: node.CPUs}
		if apart := node.CPUs.Intersection(ptr.Deref(machine.Isolated, cpuset.Set{})); !apart.IsEmpty() {
			isolated = append(isolated, Zone{Device: fmt.Sprintf("isolated-%d", node.ID), Nodes: next.Nodes, CPUs: apart, Isolated: true})
			next.CPUs = node.CPUs.Difference(apart)
		}
		if by == deviceclasses.ZoneByL3 {
			zones = append(zones, next.split(node.CPUs, machine.L3s)...)
			continue
		}
		if by == deviceclasses.ZoneByCoreType && node.CoreType == numa.MixedCores {
			zones = append(zones, next.byCoreType(machine.Cores)...)
			continue
		}
		if same := Named(zones, next.Device); same != nil {
			same.Nodes = append(same.Nodes, node.ID)
			same.CPUs = same.CPUs.Union(next.CPUs)
			continue
		}
		zones = append(zones, next)
	}
	return append(zones, isolated...)
}

// Named returns the zone with a device name; nil if there is none.
func Named(zones []Zone, device string) *Zone {
	i := slices.IndexFunc(zones, func(z Zone) bool { return z.Device == device })
	if i < 0 {
		return nil
	}
	return &zones[i]
}

// coarseName returns the device name of the zone that the NUMA node is in.
func coarseName(machine *numa.Machine, node *numa.Zone, by string) string {
	if node.CPUs.IsEmpty() && node.CPUsIn != nil {
		if owner, found := machine.Zone(*node.CPUsIn); found && (by == deviceclasses.ZoneByMachine || by == deviceclasses.ZoneBySocket) {
			return coarseName(machine, &owner, by)
		}
	}
	switch {
	case node.CPUs.IsEmpty():
	case by == deviceclasses.ZoneByMachine:
		return "machine"
	case by == deviceclasses.ZoneBySocket && len(node.Sockets) == 1:
		return fmt.Sprintf("socket-%d", node.Sockets[0])
	}
	return fmt.Sprintf("numa-%d", node.ID)
}

// split makes a zone of each cache of a NUMA node with the CPUs node. A last zone gets
// the memory, and the CPUs that are in none of these caches.
func (z Zone) split(node cpuset.Set, l3s []numa.Cache) (zones []Zone) {
	for i := range l3s {
		if cpus := l3s[i].CPUs.Intersection(z.CPUs); !cpus.IsEmpty() && l3s[i].CPUs.IsSubsetOf(node) {
			zones = append(zones, Zone{Device: fmt.Sprintf("l3-%d", l3s[i].ID), Nodes: z.Nodes, CPUs: cpus, L3: &l3s[i].ID})
		}
	}
	for i := range zones {
		z.CPUs = z.CPUs.Difference(zones[i].CPUs)
	}
	return append(zones, z)
}

// byCoreType makes a zone of the CPUs of each type of cores of a NUMA node. A last zone gets
// the memory.
func (z Zone) byCoreType(cores []numa.Core) (zones []Zone) {
	for _, kind := range []numa.CoreType{numa.PerformanceCores, numa.EfficientCores, numa.StandardCores} {
		next := Zone{Device: fmt.Sprintf("%s-%d", kind, z.Nodes[0]), Nodes: z.Nodes, CoreType: kind}
		for i := range cores {
			if cores[i].Type == kind {
				next.CPUs = next.CPUs.Union(cores[i].CPUs.Intersection(z.CPUs))
			}
		}
		if !next.CPUs.IsEmpty() {
			z.CPUs = z.CPUs.Difference(next.CPUs)
			zones = append(zones, next)
		}
	}
	return append(zones, z)
}

// Joined returns the machine with the NUMA nodes of the zone joined into the first one,
// so that CPUs are chosen from all of them. Each NUMA node becomes a die, which shows
// which CPUs are near each other.
func (z Zone) Joined(machine *numa.Machine) numa.Machine {
	whole := *machine
	whole.Zones = []numa.Zone{{ID: z.Nodes[0]}}
	whole.Cores = slices.DeleteFunc(slices.Clone(machine.Cores), func(core numa.Core) bool { return !slices.Contains(z.Nodes, core.Zone) })
	for i := range whole.Cores {
		core := &whole.Cores[i]
		core.Die, core.Zone = ptr.To(core.Zone), z.Nodes[0]
	}
	return whole
}

// ThreadsPerCore returns the largest number of threads of a core on its NUMA nodes; 0
// without CPUs.
func (z Zone) ThreadsPerCore(machine *numa.Machine) (threads int) {
	for _, id := range z.Nodes {
		threads = max(threads, machine.ThreadsPerCore(id))
	}
	return threads
}
