package caches

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// cachesOfZones returns the id of the cache that each zone with CPUs lies in, by the name
// of the zone's device. Each zone must lie in one cache: the scheduler chooses a zone and
// a cache, and any free CPUs of this zone must be CPUs of this cache. Isolated CPUs are where
// the boot parameter has them, so their zone may lie in several: it is left out, and claims
// cannot have ways for it.
func cachesOfZones(machine *numa.Machine, by string) (map[string]int, error) {
	caches, err := tryCachesOfZones(machine, by)
	if err != nil && by != deviceclasses.ZoneByL3 {
		if _, otherwise := tryCachesOfZones(machine, deviceclasses.ZoneByL3); otherwise == nil {
			return nil, fmt.Errorf("%w; set zoneBy to %s", err, deviceclasses.ZoneByL3)
		}
	}
	return caches, err
}

func tryCachesOfZones(machine *numa.Machine, by string) (map[string]int, error) {
	caches := map[string]int{}
	for _, zone := range zones.Of(machine, by) {
		rest := zone.CPUs
		var in []int
		for i := range machine.L3s {
			if l3 := &machine.L3s[i]; l3.CPUs.Overlaps(rest) {
				in = append(in, l3.ID)
				rest = rest.Difference(l3.CPUs)
			}
		}
		switch {
		case zone.CPUs.IsEmpty() || zone.Isolated && (len(in) > 1 || !rest.IsEmpty()):
		case !rest.IsEmpty():
			return nil, fmt.Errorf("zone %s has CPUs %s, which have no level-3 cache: want each zone in one level-3 cache", zone.Device, rest)
		case len(in) > 1:
			return nil, fmt.Errorf("zone %s has CPUs of %d level-3 caches: want each zone in one level-3 cache", zone.Device, len(in))
		default:
			caches[zone.Device] = in[0]
		}
	}
	return caches, nil
}

// nodeOf returns the id of the NUMA node of a cache; nil if it has CPUs of several.
func nodeOf(machine *numa.Machine, l3 *numa.Cache) *int {
	var node *int
	for i := range machine.Zones {
		if !machine.Zones[i].CPUs.Overlaps(l3.CPUs) {
			continue
		}
		if node != nil {
			return nil
		}
		node = ptr.To(machine.Zones[i].ID)
	}
	return node
}
