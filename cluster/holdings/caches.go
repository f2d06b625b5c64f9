package holdings

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Caches is what claims hold of the level-3 caches of nodes. It says how many ways a claim
// has, and not which: no object of the API has the masks.
type Caches struct {
	// Nodes are the nodes with pools of caches, sorted by name.
	Nodes []NodeCaches `json:"nodes"`
	// Undivided are the names of all other nodes.
	Undivided []string `json:"undivided"`
}

// NodeCaches is the caches of a node.
type NodeCaches struct {
	Node   string  `json:"node"`
	Caches []Cache `json:"caches"` // by id; a cache whose id is not known comes last
}

// Cache is a level-3 cache whose ways are divided.
type Cache struct {
	L3       *int64      `json:"l3"`       // id of the cache; null if neither a slice nor a claim says it
	NUMANode *int64      `json:"numaNode"` // null if the cache has CPUs of several NUMA nodes
	Pools    []CachePool `json:"pools"`    // guaranteed, besteffort, shared
}

// CachePool is a device: the part of a cache that claims of one kind can have.
type CachePool struct {
	Pool    string    `json:"pool"` // guaranteed, besteffort or shared; "" if not known
	Device  string    `json:"device"`
	State   State     `json:"state"`
	Reason  string    `json:"reason,omitempty"`
	Ways    *Resource `json:"ways,omitempty"`    // minima in the pool besteffort; absent in the pool shared
	Classes *Resource `json:"classes,omitempty"` // classes of the kernel, one for each claim
	Members *Resource `json:"members,omitempty"` // claims that have the same ways, in the pool shared
	Shares  []Share   `json:"shares"`
	Taints  []Taint   `json:"taints"`
	// Of is the device, with all that is published about it.
	Of *Device `json:"-"`
}

// Caches returns what claims hold of caches.
func (c Cluster) Caches() Caches {
	all := Caches{Nodes: []NodeCaches{}, Undivided: []string{}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		caches := n.caches()
		if len(caches) == 0 {
			all.Undivided = append(all.Undivided, n.Name)
			continue
		}
		all.Nodes = append(all.Nodes, NodeCaches{n.Name, caches})
	}
	return all
}

func (n *Node) caches() (list []Cache) {
	for _, place := range n.View().Places {
		for i := range place.Devices {
			device := &place.Devices[i]
			if !device.Cache {
				continue
			}
			pool, l3 := device.cachePool()
			at := slices.IndexFunc(list, func(c Cache) bool { return c.L3 != nil && l3 != nil && *c.L3 == *l3 })
			if at < 0 {
				at = len(list)
				list = append(list, Cache{L3: l3})
			}
			list[at].NUMANode = cmp.Or(list[at].NUMANode, place.NUMANode)
			list[at].Pools = append(list[at].Pools, pool)
		}
	}
	for i := range list {
		slices.SortStableFunc(list[i].Pools, func(a, b CachePool) int { return cmp.Compare(poolOrder(a.Pool), poolOrder(b.Pool)) })
	}
	slices.SortStableFunc(list, func(a, b Cache) int { return cmp.Compare(a.order(), b.order()) })
	return list
}

// cachePool returns a device of a cache, and the id of the cache. A device that is not
// published is what the statuses of its claims say.
func (d *Device) cachePool() (pool CachePool, l3 *int64) {
	pool = CachePool{Device: d.Name, State: d.State, Reason: d.Reason, Shares: d.Shares, Taints: d.Taints, Of: d}
	pool.Ways = d.Resource(string(deviceclasses.CapacityWays))
	pool.Classes = d.Resource(string(deviceclasses.CapacityClasses))
	pool.Members = d.Resource(string(deviceclasses.CapacityMembers))
	pool.Pool, _ = d.Attribute(deviceclasses.AttributePool)
	if text, has := d.Attribute(deviceclasses.AttributeL3); has {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			l3 = &id
		}
	}
	for i := range d.Shares {
		if status := d.Shares[i].Cache; status != nil && d.State == StateUnpublished {
			pool.Pool, l3 = status.Pool, new(int64(status.L3))
		}
	}
	return pool, l3
}

// isLimit reports whether a capacity of the device limits each claim by itself, so that
// its sum means nothing. The bandwidth of a cache does.
func (d *Device) isLimit(resource string) bool {
	return d.Cache && slices.Contains([]string{string(deviceclasses.CapacityBandwidthPercent), string(deviceclasses.CapacityBandwidthMBps)}, resource)
}

// order sorts caches whose id is not known last.
func (c *Cache) order() int64 {
	if c.L3 == nil {
		return math.MaxInt64
	}
	return *c.L3
}

// poolOrder sorts pools that are not known last.
func poolOrder(pool string) int {
	order := []string{ways.Guaranteed, ways.BestEffort, ways.Shared}
	if at := slices.Index(order, pool); at >= 0 {
		return at
	}
	return len(order)
}
