package zones

import (
	"cmp"
	"math"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Sort puts devices of zones in the order in which the scheduler should try them: it takes the
// first with room, and evaluates the selectors of a claim for each device before it looks for
// room. So zones whose CPUs are all taken come last. Zones near a PCI device come behind the
// other zones with room, because CPUs near a device are scarce. Those that are equal so far are
// in the order that by says, which is the zoneOrder of a NodeConfig; "" means that of zones.
//
// Taken are the CPUs that claims cannot get. Zones without CPUs count as having room, and come
// behind those with some.
func Sort(devices []resourceapi.Device, zones []Zone, pci []resourceapi.Device, taken cpuset.Set, by string) {
	places := make(map[string]place, len(zones))
	for i, zone := range zones {
		places[zone.Device] = placeOf(zone, i, pci, taken, by)
	}
	slices.SortFunc(devices, func(a, b resourceapi.Device) int { return places[a.Name].compare(places[b.Name]) })
}

// place is where a zone comes among the others: what is less comes first, from the first field
// to the last.
type place struct{ full, near, free, index int }

func placeOf(zone Zone, index int, pci []resourceapi.Device, taken cpuset.Set, by string) place {
	p := place{index: index}
	free := zone.CPUs.Difference(taken).Size()
	if free == 0 && !zone.CPUs.IsEmpty() {
		p.full = 1
	}
	if zone.isNear(pci) {
		p.near = 1
	}
	switch {
	case by == deviceclasses.ZoneOrderSpread:
		p.free = -free
	case by == deviceclasses.ZoneOrderPack && zone.CPUs.IsEmpty():
		p.free = math.MaxInt
	case by == deviceclasses.ZoneOrderPack:
		p.free = free
	}
	return p
}

func (p place) compare(other place) int {
	return cmp.Or(p.full-other.full, p.near-other.near, cmp.Compare(p.free, other.free), p.index-other.index)
}

// Foremost returns the names of the zones that come first for claims of some number of CPUs,
// sorted: of devices in this order, the first one, and each with more free CPUs than all before
// it. Two orders for which these are the same are the same for the scheduler, except for claims
// whose selectors leave zones out. Isolated CPUs count by themselves: a request is for such CPUs
// or for others.
func Foremost(devices []resourceapi.Device, zones []Zone, taken cpuset.Set) (names []string) {
	most := make(map[bool]int) // free CPUs of one zone so far, by whether they are isolated
	for i := range devices {
		zone := Named(zones, devices[i].Name)
		if zone == nil {
			continue
		}
		free := zone.CPUs.Difference(taken).Size()
		if before, later := most[zone.Isolated]; !later || free > before {
			most[zone.Isolated] = free
			names = append(names, zone.Device)
		}
	}
	slices.Sort(names)
	return names
}

// isNear reports whether one of the devices is on a NUMA node of the zone.
func (z Zone) isNear(devices []resourceapi.Device) bool {
	return slices.ContainsFunc(devices, func(device resourceapi.Device) bool {
		node := device.Attributes[deviceclasses.AttributeNUMANode].IntValue
		return node != nil && slices.Contains(z.Nodes, int(*node))
	})
}
