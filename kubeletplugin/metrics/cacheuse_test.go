package metrics

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// sampleCacheUse has a claim that is counted in two groups of a cache, one with sub-NUMA
// clustering, one that is not counted, and one that is counted together with others.
func sampleCacheUse() (*nodestate.Resctrl, error) {
	counts := func(occupancy, all, near uint64) nodestate.Counts {
		return nodestate.Counts{OccupancyBytes: ptr.To(occupancy), TotalBytes: ptr.To(all), LocalBytes: ptr.To(near)}
	}
	use := func(name string, caches ...nodestate.CacheUse) nodestate.ClaimUse {
		return nodestate.ClaimUse{Claim: nodestate.Claim{UID: "u", Name: name}, Caches: caches}
	}
	together := use("team/together", nodestate.CacheUse{Counts: counts(1, 1, 1)})
	together.Shared = true
	return &nodestate.Resctrl{Claims: []nodestate.ClaimUse{
		use("team/a", nodestate.CacheUse{L3: 1, Counts: counts(10, 100, 50)}),
		use("team/a", nodestate.CacheUse{L3: 1, Counts: counts(1, 2, 3)}),
		use("team/b", nodestate.CacheUse{L3: 0, Counts: counts(7, 8, 9), Zones: []nodestate.ZoneUse{
			{NUMANode: 0, Counts: counts(3, 4, 5)}, {NUMANode: 1, Counts: nodestate.Counts{OccupancyBytes: ptr.To[uint64](4)}},
		}}),
		use("team/uncounted"),
		together,
	}}, nil
}

// What is counted of a claim adds up. Of a cache with sub-NUMA clustering, only its NUMA
// nodes are shown.
func TestMetricsOfCacheUse(t *testing.T) {
	counted, _ := sampleCacheUse()
	e, _ := newExporter(t)
	d := openDriver(t)
	var failure error
	e.Serve(Node{Driver: d, Figures: sampleFigures(d), Hooks: sampleHooks, CacheUse: func() (*nodestate.Resctrl, error) { return counted, failure }})
	shown := func() (lines []string) {
		for line := range strings.Lines(scrape(t, e)) {
			if strings.HasPrefix(line, "dra_numa_claim_cache_occupancy") || strings.HasPrefix(line, "dra_numa_claim_memory_traffic") || strings.HasPrefix(line, "dra_numa_claim_near") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return lines
	}
	want := []string{
		`dra_numa_claim_cache_occupancy_bytes{l3="0",namespace="team",numa_node="0",resourceclaim="b"} 3`,
		`dra_numa_claim_cache_occupancy_bytes{l3="0",namespace="team",numa_node="1",resourceclaim="b"} 4`,
		`dra_numa_claim_cache_occupancy_bytes{l3="1",namespace="team",numa_node="",resourceclaim="a"} 11`,
		`dra_numa_claim_memory_traffic_bytes_total{l3="0",namespace="team",numa_node="0",resourceclaim="b"} 4`,
		`dra_numa_claim_memory_traffic_bytes_total{l3="1",namespace="team",numa_node="",resourceclaim="a"} 102`,
		`dra_numa_claim_near_memory_traffic_bytes_total{l3="0",namespace="team",numa_node="0",resourceclaim="b"} 5`,
		`dra_numa_claim_near_memory_traffic_bytes_total{l3="1",namespace="team",numa_node="",resourceclaim="a"} 53`,
	}
	if got := shown(); !slices.Equal(got, want) {
		t.Errorf("metrics are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if failure = errors.New("not mounted"); len(shown()) != 0 {
		t.Errorf("without counters: %q", shown())
	}
}
