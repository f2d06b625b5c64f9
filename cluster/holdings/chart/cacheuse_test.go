package chart

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// askedNodes is what the nodes of occupied.Divided say: worker-2 only counts.
func askedNodes() Resctrl {
	number := func(n uint64) *uint64 { return &n }
	counts := func(occupied, total, local uint64) nodestate.Counts {
		return nodestate.Counts{OccupancyBytes: number(occupied), TotalBytes: number(total), LocalBytes: number(local)}
	}
	claim := func(name, group string, caches ...nodestate.CacheUse) nodestate.ClaimUse {
		return nodestate.ClaimUse{Claim: nodestate.Claim{UID: "uid-" + name, Name: "prod/" + name}, Group: group, Caches: caches}
	}
	bronze := claim("bronze-0", "dra-numa.1", nodestate.CacheUse{L3: 0, Counts: nodestate.Counts{OccupancyBytes: number(3 << 20)}})
	bronze.Shared = true
	lost := claim("late", "")
	lost.Why = "the kernel has no counter (RMID) left"
	os, infra, shared := nodestate.GroupWays{Ways: 1, Pool: "os"}, nodestate.GroupWays{Group: "dra-numa.0", Ways: 0xffffe, Pool: "infra"}, nodestate.GroupWays{Group: "dra-numa.1", Ways: 0xc0000, Pool: "shared"}
	return Resctrl{
		"worker-1": {
			Caches: []nodestate.L3{
				{ID: 0, Ways: 0xfffff, Devices: 0xc0000, Groups: []nodestate.GroupWays{
					os, infra, shared,
					{Group: "COS1", Ways: 0x600},
					{Group: "dra-numa.2", Ways: 0x1e, Claims: []string{"prod/gold-a"}},
					{Group: "dra-numa.3", Ways: 0x60, Claims: []string{"prod/gold-b"}},
					{Group: "dra-numa.4", Ways: 0xf800, Claims: []string{"prod/silver"}},
					{Group: "dra-numa.5", Ways: 0x10000, Claims: []string{"prod/new"}},
				}},
				{ID: 1, Ways: 0xfffff, Groups: []nodestate.GroupWays{os, {Group: "dra-numa.2", Ways: 0x7fe, Claims: []string{"prod/gold-c"}}, {Group: "dra-numa.65537", Ways: 0x20000, Pool: "reserved"}, {Group: "dra-numa.dpdk", Ways: 0x18000, Pool: "groups"}, shared}},
			},
			Classes: &nodestate.Supply{Total: 16, Used: 12}, RMIDs: &nodestate.Supply{Total: 32, Used: 32},
			Claims: []nodestate.ClaimUse{
				bronze,
				claim("gold-a", "dra-numa.2", nodestate.CacheUse{L3: 0, Counts: counts(7<<20, 12<<30, 9<<30)}),
				claim("plain", "mon_groups/dra-numa.uid-plain",
					nodestate.CacheUse{L3: 0, Counts: counts(0, 5<<20, 0), Zones: []nodestate.ZoneUse{{NUMANode: 0, Counts: counts(0, 1<<20, 0)}, {NUMANode: 2, Counts: counts(0, 4<<20, 0)}}},
					nodestate.CacheUse{L3: 1, Counts: counts(1536, 0, 0)}),
				lost,
			},
		},
		"worker-2": {RMIDs: &nodestate.Supply{Total: 32, Used: 2}, Claims: []nodestate.ClaimUse{claim("other", "mon_groups/dra-numa.uid-other", nodestate.CacheUse{L3: 3, Counts: counts(1<<20, 1<<21, 0)})}},
	}
}

func TestCachesOfNodesThatWereAsked(t *testing.T) {
	c := holdings.Of(&occupied.Divided(t).Snapshot)
	files.Golden(t, filepath.Join("testdata", "caches", "asked.txt"), files.Render(t, func(w io.Writer) error { return CachesText(w, c, askedNodes(), draw.TextOptions{}) }))
	files.Golden(t, filepath.Join("testdata", "caches", "asked.svg"), files.Render(t, func(w io.Writer) error { return CachesSVG(w, c, askedNodes()) }))
	for _, width := range []int{draw.MinWidth, 60, 300} {
		text := files.Render(t, func(w io.Writer) error { return CachesText(w, c, askedNodes(), draw.TextOptions{Width: width}) })
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); len(line) > width {
				t.Errorf("width %d: line %q", width, line)
			}
		}
	}
}

func TestUsesOfAClaim(t *testing.T) {
	r := askedNodes()["worker-1"]
	for claim, want := range map[string]string{
		"prod/gold-a":   "cache 0: occupies 7 MiB, 12 GiB from and to all memory, 9 GiB from and to near memory",
		"prod/bronze-0": "cache 0: occupies 3 MiB, counted together with the other members",
		"prod/late":     "not all of it is counted: the kernel has no counter (RMID) left",
		"prod/other":    "",
	} {
		if got := strings.Join(Uses(r, claim), "; "); got != want {
			t.Errorf("%s: %q, want %q", claim, got, want)
		}
	}
	if got := Uses(nil, "prod/gold-a"); got != nil {
		t.Errorf("a node that was not asked: %q", got)
	}
}
