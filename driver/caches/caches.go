// Package caches turns the level-3 caches of a machine into devices that claims can
// share: one for each pool of each cache, as the node is configured. It decides which
// pools there are, under which names, attributes and capacities, and what the allocation
// of such a device asks for. It does not choose the ways of a claim, and neither reads
// nor changes the host.
package caches

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// ErrNotSupported says that the level-3 caches of a machine cannot be divided.
var ErrNotSupported = errors.New("the kernel does not divide level-3 caches, or resctrl is not mounted")

// Settings are what the operator, the mount and other tools decide about the caches of a
// node.
type Settings struct {
	ZoneBy  string                   // what one zone is, as in a NodeConfig; "" means a NUMA node
	Pools   deviceclasses.CachePools // valid
	Options []string                 // those that resctrl is mounted with; see [numa.ResctrlOptions]
	Foreign []Group                  // all groups of other tools

	Reserved cpuset.Set // CPUs that no claim gets
}

// Group is a group of resctrl that another tool made. It has a class, and on each cache
// a mask that cannot be moved.
type Group struct {
	Name string
	// Masks are by the id of the cache. A group without CPUs and tasks uses no ways, so it
	// has none.
	Masks map[int]ways.Mask
}

// Node is the caches of a node that claims can have part of.
type Node struct {
	// Zones has the id of the cache that each zone with CPUs lies in, by the name of the
	// zone's device. These zones publish it as their attribute l3.
	Zones map[string]int
	// Resources are the names of the caches in schemata: L3, or L3CODE and L3DATA, which
	// get the same masks.
	Resources []string
	Masks     ways.Pools // the same in each cache
	Bandwidth *Bandwidth // nil if the kernel does not limit it
	Pools     []Pool     // by cache, then guaranteed, besteffort, shared
	Warnings  []string   // what other tools take from claims

	cache     numa.CacheAllocation // of each level-3 cache
	caches    []resctrl.Cache      // of level 3
	cacheIDs  []int                // of these, ascending
	unclaimed unclaimed
	restore   bool // give everything back as soon as no claim has ways
}

// Pool is a pool of one cache.
type Pool struct {
	Device string // name of the device
	Cache  int    // numa.Cache.ID
	Node   *int   // id of the NUMA node of the cache; nil if it has CPUs of several
	Name   string // ways.Guaranteed, ways.BestEffort or ways.Shared
	Mask   ways.Mask
	// Area is what other tools leave of the mask. It has no meaning in the pool shared,
	// whose claims have no ways to themselves.
	Area ways.Area
	// Classes is how many claims the pool can have, at most one class each; 0 in the pool
	// shared, whose claims have one class together.
	Classes int
	Members int // how many claims the pool shared can have

	amounts amounts
}

// Of returns the caches of a machine. The error says why it has none for claims. It is
// [ErrNotSupported] if the kernel does not divide caches.
func Of(machine *numa.Machine, settings Settings) (Node, error) {
	cache, resources, err := level3(machine)
	if err != nil {
		return Node{}, err
	}
	node := Node{Resources: resources, Bandwidth: bandwidthOf(machine.Resctrl, settings.Options), cache: cache, restore: settings.Pools.Restore}
	for i := range machine.L3s {
		node.caches = append(node.caches, resctrl.Cache{Level: "L3", ID: machine.L3s[i].ID, CPUs: machine.L3s[i].CPUs})
		node.cacheIDs = append(node.cacheIDs, machine.L3s[i].ID)
	}
	slices.Sort(node.cacheIDs)
	if node.Zones, err = cachesOfZones(machine, settings.ZoneBy); err != nil {
		return Node{}, err
	}
	pools := settings.Pools
	if node.Masks, err = ways.Divide(cache, waysOf(pools)); err != nil {
		return Node{}, err
	}
	if node.unclaimed, err = unclaimedOf(pools, node.Masks, settings.Reserved, node.Bandwidth); err != nil {
		return Node{}, err
	}
	least := max(1, cache.MinBits)
	if err := checkAmounts(pools, least, node.Bandwidth); err != nil {
		return Node{}, err
	}
	classes, err := classesOf(machine.Resctrl, pools, len(settings.Foreign))
	if err != nil {
		return Node{}, err
	}
	if len(settings.Foreign) > 0 {
		node.warn("each of these groups of other tools takes a class: %s", quoted(settings.Foreign))
	}
	for i := range machine.L3s {
		l3 := &machine.L3s[i]
		for _, pool := range node.pools(pools, least, classes) {
			pool.Device, pool.Cache, pool.Node = fmt.Sprintf("cache-%d-%s", l3.ID, pool.Name), l3.ID, nodeOf(machine, l3)
			if pool.Name != ways.Shared {
				pool.Area = node.offer(cache, &pool, settings.Foreign)
			}
			node.Pools = append(node.Pools, pool)
		}
	}
	return node, nil
}

// pools returns the pools of each cache.
func (n *Node) pools(config deviceclasses.CachePools, least int, classes map[string]int) (list []Pool) {
	if p := config.Guaranteed; p != nil {
		list = append(list, Pool{Name: ways.Guaranteed, Mask: n.Masks.Guaranteed, amounts: guaranteed(p, least, n.Bandwidth)})
	}
	if p := config.BestEffort; p != nil {
		list = append(list, Pool{
			Name: ways.BestEffort, Mask: n.Masks.BestEffort, amounts: bestEffort(p, least, n.Bandwidth), Area: ways.Area{Growing: p.IsGrowing()},
		})
	}
	if p := config.Shared; p != nil {
		list = append(list, Pool{Name: ways.Shared, Mask: n.Masks.Shared, Members: p.Members})
	}
	for i := range list {
		list[i].Classes = classes[list[i].Name]
	}
	return list
}

// level3 returns what the kernel says of level-3 caches, and their names in schemata.
// Code and data may be apart (the mount option cdp). Then both get the same masks.
func level3(machine *numa.Machine) (cache numa.CacheAllocation, resources []string, err error) {
	if machine.Resctrl == nil {
		return numa.CacheAllocation{}, nil, ErrNotSupported
	}
	for i := range machine.Resctrl.Caches {
		c := &machine.Resctrl.Caches[i]
		switch {
		case !isLevel3(c.Name):
			continue
		case resources == nil:
			cache = *c
		case c.Mask != cache.Mask:
			return numa.CacheAllocation{}, nil, fmt.Errorf("cbm_mask of %s is %x, of %s %x: want the same", cache.Name, cache.Mask, c.Name, c.Mask)
		}
		resources = append(resources, c.Name)
		cache.MinBits = max(cache.MinBits, c.MinBits)
		cache.ShareableMask |= c.ShareableMask
		cache.Sparse = cache.Sparse && c.Sparse
	}
	if resources == nil {
		return numa.CacheAllocation{}, nil, ErrNotSupported
	}
	cache.Name = "L3"
	return cache, resources, nil
}

func isLevel3(resource string) bool {
	return slices.Contains([]string{"L3", "L3CODE", "L3DATA"}, resource)
}

// waysOf returns how many ways the pools have.
func waysOf(pools deviceclasses.CachePools) ways.Config {
	var groups []int
	for i := range pools.Groups {
		groups = append(groups, pools.Groups[i].Ways)
	}
	return ways.Config{
		Groups:     groups,
		OS:         ptr.Deref(pools.OS, deviceclasses.CacheWays{}).Ways,
		Reserved:   ptr.Deref(pools.Reserved, deviceclasses.CacheWays{}).Ways,
		Infra:      ptr.Deref(pools.Infra, deviceclasses.InfraPool{}).Ways,
		Guaranteed: ptr.Deref(pools.Guaranteed, deviceclasses.GuaranteedPool{}).Ways,
		BestEffort: ptr.Deref(pools.BestEffort, deviceclasses.BestEffortPool{}).Ways,
		Shared:     ptr.Deref(pools.Shared, deviceclasses.SharedPool{}).Ways,
	}
}

// offer returns what other tools leave of a pool, and warns about those that take ways.
func (n *Node) offer(cache numa.CacheAllocation, pool *Pool, foreign []Group) ways.Area {
	var masks []ways.Mask
	var takers []Group
	for _, group := range foreign {
		if mask := group.Masks[pool.Cache] & pool.Mask; mask != 0 {
			masks, takers = append(masks, mask), append(takers, group)
		}
	}
	area := ways.Offer(cache, pool.Mask, masks...)
	area.Growing = pool.Area.Growing
	if len(takers) > 0 {
		n.warn("groups of other tools take ways of %s, so that %d of %d are left for claims: %s",
			pool.Device, area.Usable.Ways(), pool.Mask.Ways(), quoted(takers))
	}
	return area
}

func (n *Node) warn(format string, args ...any) {
	n.Warnings = append(n.Warnings, fmt.Sprintf(format, args...))
}

// quoted returns the names of groups, as in `"a", "b"`.
func quoted(groups []Group) string {
	var names []string
	for _, group := range groups {
		names = append(names, strconv.Quote(group.Name))
	}
	return strings.Join(names, ", ")
}
