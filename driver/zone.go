package driver

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// zone is what is published as one device: a NUMA node, several of them, or the
// CPUs of one level-3 cache.
//
// Invariant: of one machine and one zoneBy, zones share no CPU.
type zone struct {
	device string     // its name
	nodes  []int      // ids of its NUMA nodes, ascending, one at least
	cpus   cpuset.Set // that are online; empty for memory only
	l3     *int       // the id of the cache that it is; such a zone has no memory
}

// first is the id of its first NUMA node; 0 of no zone, as a PCI function has it.
func (z zone) first() int {
	if len(z.nodes) == 0 {
		return 0
	}
	return z.nodes[0]
}

// zonesOf are the zones of a machine, in the order of their first NUMA nodes. A
// NUMA node without CPUs, or on several sockets, is in no socket; a cache of
// several NUMA nodes is no zone.
func zonesOf(machine *numa.Machine, by string) []zone {
	var zones []zone
	for i := range machine.Zones {
		node := &machine.Zones[i]
		next := zone{device: coarseName(node, by), nodes: []int{node.ID}, cpus: node.CPUs}
		if by == deviceclasses.ZoneByL3 {
			zones = append(zones, next.split(machine.L3s)...)
			continue
		}
		same := func(z zone) bool { return z.device == next.device }
		if at := slices.IndexFunc(zones, same); at >= 0 {
			zones[at].nodes = append(zones[at].nodes, node.ID)
			zones[at].cpus = zones[at].cpus.Union(node.CPUs)
			continue
		}
		zones = append(zones, next)
	}
	return zones
}

// find is the zone of a device name, nil if there is none.
func find(zones []zone, device string) *zone {
	for i := range zones {
		if zones[i].device == device {
			return &zones[i]
		}
	}
	return nil
}

// coarseName is the device of the zone that has the NUMA node.
func coarseName(node *numa.Zone, by string) string {
	switch {
	case node.CPUs.IsEmpty():
	case by == deviceclasses.ZoneByMachine:
		return "machine"
	case by == deviceclasses.ZoneBySocket && len(node.Sockets) == 1:
		return fmt.Sprintf("socket-%d", node.Sockets[0])
	}
	return deviceName(node.ID)
}

// split makes zones of the caches of a NUMA node, and leaves it the memory and
// the CPUs of no such cache.
func (z zone) split(l3s []numa.Cache) (zones []zone) {
	for i := range l3s {
		if cpus := l3s[i].CPUs; !cpus.IsEmpty() && cpus.IsSubsetOf(z.cpus) {
			zones = append(zones, zone{device: fmt.Sprintf("l3-%d", l3s[i].ID), nodes: z.nodes, cpus: cpus, l3: &l3s[i].ID})
		}
	}
	for i := range zones {
		z.cpus = z.cpus.Difference(zones[i].cpus)
	}
	return append(zones, z)
}

// joined is the machine with the NUMA nodes of the zone as one, its first, so that
// CPUs are chosen of any of them. Where it matters which CPUs are near to each
// other, each NUMA node is a die.
func joined(machine *numa.Machine, of zone) numa.Machine {
	whole := *machine
	whole.Zones = []numa.Zone{{ID: of.nodes[0]}}
	whole.Cores = slices.DeleteFunc(slices.Clone(machine.Cores), func(core numa.Core) bool { return !slices.Contains(of.nodes, core.Zone) })
	for i := range whole.Cores {
		core := &whole.Cores[i]
		core.Die, core.Zone = ptr.To(core.Zone), of.nodes[0]
	}
	return whole
}

// Strays are the shares of devices that are not published as they were when the
// claim was allocated: they hold something of a zone under another name, which the
// scheduler does not count there, or a PCI function that the machine does not have
// any more. See DevicesBeside.
func Strays(machine numa.Machine, config Config, grants []Grant) (shares []Share) {
	zones := zonesOf(&machine, config.ZoneBy)
	for _, grant := range grants {
		for _, share := range grant.Shares {
			of := find(zones, share.Device)
			stray := of == nil || !share.CPUs.IsSubsetOf(of.cpus)
			if !share.Function.IsZero() {
				stray = share.Gone(&machine) != ""
			}
			if stray {
				shares = append(shares, share)
			}
		}
	}
	return shares
}
