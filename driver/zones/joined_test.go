package zones

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// With sub-NUMA clustering, the NUMA nodes of a socket share its L3. A zone of several nodes still
// packs a claim into one of them, or spreads it over them, and an L3 stays the whole one.
func TestNUMANodesOfAJoinedZoneThatShareAnL3(t *testing.T) {
	const prefer, require = pick.PreferOneL3, pick.RequireOneL3
	for _, row := range []struct {
		preset, by string
		free       []int // CPUs that are free of each NUMA node of the zone
		request    pick.Request
		want       string // CPUs on each NUMA node, and the number of L3s
	}{
		{"intel-2s-snc2", "socket", []int{4, 24}, pick.Request{CPUs: 8}, "[0 8] 1"},
		{"intel-2s-snc2", "socket", []int{4, 24}, pick.Request{CPUs: 8, L3: prefer}, "[0 8] 1"},
		{"intel-2s-snc2", "socket", []int{4, 24}, pick.Request{CPUs: 8, L3: require}, "[0 8] 1"},
		{"intel-2s-snc2", "socket", []int{4, 24}, pick.Request{CPUs: 26}, "[4 22] 1"},
		{"intel-2s-snc2", "socket", []int{4, 24}, pick.Request{CPUs: 26, L3: prefer}, "[4 22] 1"},
		{"intel-2s-snc2", "socket", []int{4, 24}, pick.Request{CPUs: 26, L3: require}, "[4 22] 1"},
		{"intel-2s-snc2", "socket", []int{24, 24}, pick.Request{CPUs: 12, Placement: pick.Spread}, "[6 6] 1"},
		{"intel-2s-snc2", "socket", []int{24, 24}, pick.Request{CPUs: 12, Placement: pick.Spread, L3: prefer}, "[6 6] 1"},
		{"intel-2s-snc2", "socket", []int{24, 24}, pick.Request{CPUs: 12, Placement: pick.Spread, L3: require}, "[6 6] 1"},
		{"intel-2s-snc2", "socket", []int{24, 24}, pick.Request{CPUs: 16, Cores: pick.OneThreadPerCore}, "[12 4] 1"},
		{"intel-2s-snc2", "machine", []int{24, 20, 20, 24}, pick.Request{CPUs: 40}, "[0 0 20 20] 1"},
		{"intel-2s-snc2", "machine", []int{24, 24, 10, 10}, pick.Request{CPUs: 12}, "[12 0 0 0] 1"},
		{"intel-2s-snc2", "machine", []int{24, 24, 10, 10}, pick.Request{CPUs: 58}, "[24 24 10 0] 2"},
		{"intel-2s-snc2", "machine", []int{24, 24, 24, 24}, pick.Request{CPUs: 16, Placement: pick.Spread}, "[4 4 4 4] 2"},
		{"intel-2s-snc2", "machine", []int{24, 8, 22, 8}, pick.Request{CPUs: 31, L3: require}, "[23 8 0 0] 1"},
		{"intel-2s-snc2", "machine", []int{24, 24, 24, 24}, pick.Request{CPUs: 49, L3: require}, "not enough"},
		{"intel-2s-snc3", "socket", []int{4, 16, 16}, pick.Request{CPUs: 8}, "[0 8 0] 1"},
		{"intel-2s-snc3", "socket", []int{4, 16, 16}, pick.Request{CPUs: 8, L3: require}, "[0 8 0] 1"},
		{"intel-2s-snc3", "socket", []int{16, 16, 16}, pick.Request{CPUs: 12, Placement: pick.Spread}, "[4 4 4] 1"},
		{"intel-2s-snc3", "machine", []int{8, 8, 8, 12, 0, 0}, pick.Request{CPUs: 20}, "[8 8 4 0 0 0] 1"},
		{"intel-2s-snc3", "machine", []int{8, 8, 8, 12, 0, 0}, pick.Request{CPUs: 20, L3: prefer}, "[8 8 4 0 0 0] 1"},
	} {
		machine := sample.Machine(t, row.preset)
		zone := Of(&machine, row.by)[0]
		var free cpuset.Set
		for i, id := range zone.Nodes {
			node, _ := machine.Zone(id)
			left := row.free[i]
			for _, core := range machine.Cores {
				if core.Zone == node.ID && left > 0 {
					free, left = free.Union(core.CPUs), left-core.CPUs.Size()
				}
			}
		}
		row.request.Zones = zone.Nodes[:1]
		choice, err := pick.New(zone.Joined(&machine)).Pick(free, row.request)
		got := "not enough"
		if !errors.Is(err, pick.ErrNotEnough) {
			on := make([]int, len(zone.Nodes))
			for i, id := range zone.Nodes {
				node, _ := machine.Zone(id)
				on[i] = node.CPUs.Intersection(choice.CPUs).Size()
			}
			got = fmt.Sprintf("%v %d", on, choice.Why.L3s)
		}
		if got != row.want {
			t.Errorf("%s by %s, free %v, %+v: %s, %v; want %s", row.preset, row.by, row.free, row.request, got, err, row.want)
		}
	}
}
