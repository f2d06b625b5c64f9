package metrics

import (
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// countedIn is where something is counted for a claim. The NUMA node is empty unless the
// machine counts each NUMA node of a cache by itself.
type countedIn struct{ namespace, claim, cache, numaNode string }

// collectCacheUse is what the kernel counts for claims in level-3 caches. Claims that are
// counted together have no metrics, because the sum over claims would count them twice.
func (e *Exporter) collectCacheUse(out sink, counted *nodestate.Resctrl) {
	f := e.families
	type totals map[countedIn]uint64
	occupied, all, near := totals{}, totals{}, totals{}
	for _, use := range counted.Claims {
		if use.Shared {
			continue
		}
		namespace, claim, _ := strings.Cut(use.Name, "/")
		add := func(cache int, numaNode string, counts nodestate.Counts) {
			in := countedIn{namespace, claim, strconv.Itoa(cache), numaNode}
			for into, value := range map[*totals]*uint64{&occupied: counts.OccupancyBytes, &all: counts.TotalBytes, &near: counts.LocalBytes} {
				if value != nil {
					(*into)[in] += *value
				}
			}
		}
		for _, cache := range use.Caches {
			if len(cache.Zones) == 0 {
				add(cache.L3, "", cache.Counts)
			}
			for _, zone := range cache.Zones {
				add(cache.L3, strconv.Itoa(zone.NUMANode), zone.Counts)
			}
		}
	}
	for family, values := range map[*family]totals{f.claimOccupancy: occupied, f.claimTraffic: all, f.claimNearTraffic: near} {
		for in, value := range values {
			out.add(family, float64(value), in.namespace, in.claim, in.cache, in.numaNode)
		}
	}
}
