package driver

import (
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// page is one hugepage of the machine.
type page struct {
	node  int
	bytes uint64
	size  string
	owner types.UID // of a claim, or nobody or stranger
}

const (
	nobody   types.UID = ""
	stranger types.UID = "a program without a claim"
)

// pages are what the kernel knows of the hugepages of a machine.
type pages []page

// reservedPages are out of reach for claims.
var reservedPages = zones.Reservations{
	{Nodes: cpuset.New(0), Size: "1Gi", Bytes: 1 << 30}, {Nodes: cpuset.New(2, 3), Size: "2Mi", Bytes: 4 << 20},
}

// withPages gives each NUMA node two hugepages of 1 GiB, and eight of 2 MiB.
func withPages(machine *numa.Machine) (all pages) {
	machine.Zones = slices.Clone(machine.Zones)
	for i := range machine.Zones {
		pools := []numa.Hugepages{{PageBytes: 2 << 20, TotalPages: 8}, {PageBytes: 1 << 30, TotalPages: 2}}
		machine.Zones[i].Hugepages = pools
		for _, pool := range pools {
			for range pool.TotalPages {
				all = append(all, page{machine.Zones[i].ID, pool.PageBytes, binary(pool.PageBytes), nobody})
			}
		}
	}
	return all
}

// count returns the bytes of pages with one of the owners.
func (p pages) count(nodes cpuset.Set, size string, owners ...types.UID) (bytes uint64) {
	for _, page := range p {
		if nodes.Contains(page.node) && page.size == size && slices.Contains(owners, page.owner) {
			bytes += page.bytes
		}
	}
	return bytes
}

// read is Config.Hugepages.
func (p pages) read(nodes cpuset.Set, _ map[string][]string) (Hugepages, error) {
	now := Hugepages{Total: map[int]map[string]uint64{}, Free: map[int]map[string]uint64{}}
	used := map[types.UID]map[int]map[string]uint64{}
	add := func(amounts map[int]map[string]uint64, page page) {
		if amounts[page.node] == nil {
			amounts[page.node] = map[string]uint64{}
		}
		amounts[page.node][page.size] += page.bytes
	}
	for _, page := range p {
		if nodes.Contains(page.node) {
			add(now.Total, page)
		}
		switch {
		case page.owner == nobody && nodes.Contains(page.node):
			add(now.Free, page)
		case page.owner != nobody && page.owner != stranger:
			if used[page.owner] == nil {
				used[page.owner] = map[int]map[string]uint64{}
			}
			add(used[page.owner], page)
		}
	}
	for uid, amounts := range used {
		now.Pods = append(now.Pods, podWith(amounts, uid))
	}
	return now, nil
}

// change lets strangers come and go, and containers of claims touch pages. Those of claims
// that have ended are free again.
func (p pages) change(random *rand.Rand, grants []ledger.Grant) {
	held := map[types.UID]ledger.Grant{}
	for _, grant := range grants {
		held[grant.UID] = grant
	}
	for i := range p {
		page := &p[i]
		if grant, ok := held[page.owner]; !ok && page.owner != stranger || grant.Hugepages(cpuset.New(page.node), page.size) < p.count(cpuset.New(page.node), page.size, page.owner) {
			page.owner = nobody
		}
		switch {
		case page.owner == stranger && random.IntN(16) == 0:
			page.owner = nobody
		case page.owner == nobody && random.IntN(12) == 0:
			page.owner = stranger
		case page.owner == nobody && random.IntN(4) == 0 && len(grants) > 0:
			p.touch(page, grants[random.IntN(len(grants))])
		}
	}
}

// release frees the pages of a claim.
func (p pages) release(uid types.UID) {
	for i := range p {
		if p[i].owner == uid {
			p[i].owner = nobody
		}
	}
}

// touch gives the page to a container of the claim, if the claim still has such a page.
func (p pages) touch(page *page, grant ledger.Grant) {
	for _, share := range grant.Shares {
		zone := share.Zone()
		if zone == nil || !zone.Mems().Overlaps(cpuset.New(page.node)) {
			continue
		}
		if p.count(zone.Mems(), page.size, grant.UID)+page.bytes <= zone.HugepageBytes[page.size] {
			page.owner = grant.UID
			return
		}
	}
}

// suffice reports whether there are enough pages for the wishes of a claim, besides those
// that others were promised and those that are reserved.
func (p pages) suffice(uid types.UID, wishes []zoneWish, grants []ledger.Grant) bool {
	for i, wish := range wishes {
		nodes := cpuset.New(wish.zone.Nodes...)
		for size := range wish.hugepageBytes {
			var need, reserved uint64
			for _, own := range wishes[:i+1] {
				if cpuset.New(own.zone.Nodes...).Overlaps(nodes) {
					need += own.hugepageBytes[size]
				}
			}
			for _, grant := range grants {
				if held, used := grant.Hugepages(nodes, size), p.count(nodes, size, grant.UID); grant.UID != uid && held > used {
					need += held - used
				}
			}
			for node := range nodes.All() {
				reserved += reservedPages.Bytes(node, size)
			}
			if strangers := p.count(nodes, size, stranger); reserved > strangers {
				need += reserved - strangers
			}
			if p.count(nodes, size, nobody) < need {
				return false
			}
		}
	}
	return true
}
