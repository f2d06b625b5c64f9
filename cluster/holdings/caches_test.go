package holdings_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// sharesOf returns the shares of caches.
func sharesOf(c holdings.Cluster) (shares []holdings.Share) {
	for _, claim := range c.Claims {
		for _, share := range claim.Shares {
			if strings.HasPrefix(share.Device, "cache-") {
				shares = append(shares, share)
			}
		}
	}
	return shares
}

func TestCachesCountAsNoZones(t *testing.T) {
	c := holdings.Of(&occupied.Divided(t).Snapshot)
	worker := c.Node("worker-1")
	var totals []string
	for _, r := range worker.Totals {
		totals = append(totals, fmt.Sprintf("%s %s of %s", r.Name, r.Free, r.Total))
	}
	if diff := cmp.Diff([]string{"cpu 26 of 40", "memory 1948Mi of 1948Mi"}, totals); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	shares := sharesOf(c)
	if len(shares) != 7 {
		t.Fatalf("%d shares of caches", len(shares))
	}
	for _, share := range shares {
		if share.CPUs != nil || share.Mems != nil || share.Function != nil || share.Reported != (share.Cache != nil) {
			t.Errorf("%s: %+v", share.Claim, share)
		}
	}
	for _, device := range worker.NUMANodes[0].Devices {
		if isCache := strings.HasPrefix(device.Name, "cache-"); device.Cache != isCache || device.Zone == isCache {
			t.Errorf("%s: cache %t, zone %t", device.Name, device.Cache, device.Zone)
		}
	}
	if len(worker.Problems) > 0 {
		t.Errorf("problems %q", worker.Problems)
	}
}

// A cache that claims still hold after its slice is gone is no zone either. What is known
// of it is what the claims say.
func TestCacheThatIsNotPublishedIsNoZone(t *testing.T) {
	c := occupied.New(t)
	c.AddNode("n")
	status := &deviceclasses.CacheStatus{Pool: "guaranteed", L3: 1, Group: "dra-numa.2", Request: "cpus", Ways: 4}
	c.AddClaim("d/a", occupied.Share{Node: "n", Device: "cache-1-guaranteed", Amounts: "ways=4,classes=1", Cache: status})
	c.AddClaim("d/b", occupied.Share{Node: "n", Device: "cache-1-shared", Amounts: "members=1"})
	got := holdings.Of(&c.Snapshot)
	if len(got.Nodes[0].Totals) > 0 {
		t.Errorf("totals are %+v", got.Nodes[0].Totals)
	}
	var pools []string
	for _, cache := range got.Caches().Nodes[0].Caches {
		for _, pool := range cache.Pools {
			id := "?"
			if cache.L3 != nil {
				id = fmt.Sprint(*cache.L3)
			}
			pools = append(pools, fmt.Sprintf("%s %s=%s %s", id, pool.Device, pool.Pool, pool.State))
		}
	}
	if diff := cmp.Diff([]string{"1 cache-1-guaranteed=guaranteed unpublished", "? cache-1-shared= unpublished"}, pools); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCachesOfNodes(t *testing.T) {
	caches := holdings.Of(&occupied.Divided(t).Snapshot).Caches()
	var lines []string
	for _, node := range caches.Nodes {
		for _, cache := range node.Caches {
			for _, pool := range cache.Pools {
				line := fmt.Sprintf("%s L3 %d node %d %s:", node.Node, *cache.L3, *cache.NUMANode, pool.Pool)
				for _, r := range []*holdings.Resource{pool.Ways, pool.Classes, pool.Members} {
					if r != nil {
						line += fmt.Sprintf(" %s %s+%s=%s", r.Name, &r.Held, r.Free, r.Total)
					}
				}
				lines = append(lines, fmt.Sprintf("%s, %d shares", line, len(pool.Shares)))
			}
		}
	}
	want := []string{
		"worker-1 L3 0 node 0 guaranteed: ways 6+4=10 classes 2+6=8, 2 shares",
		"worker-1 L3 0 node 0 besteffort: ways 2+5=7 classes 1+4=5, 1 shares",
		"worker-1 L3 0 node 0 shared: members 3+7=10, 3 shares",
		"worker-1 L3 1 node 1 guaranteed: ways 10+0=10 classes 1+7=8, 1 shares",
		"worker-1 L3 1 node 1 besteffort: ways 0+7=7 classes 0+5=5, 0 shares",
		"worker-1 L3 1 node 1 shared: members 0+10=10, 0 shares",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"worker-2"}, caches.Undivided); diff != "" {
		t.Errorf("nodes without divided caches (-want +got):\n%s", diff)
	}
}

func TestNoListOfCachesIsNull(t *testing.T) {
	for name, c := range map[string]*occupied.Cluster{"none": occupied.New(t), "divided": occupied.Divided(t)} {
		text, err := json.Marshal(holdings.Of(&c.Snapshot).Caches())
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"nodes", "undivided", "caches", "pools", "shares", "taints"} {
			if strings.Contains(string(text), `"`+list+`":null`) {
				t.Errorf("%s: %s is null", name, list)
			}
		}
	}
}
