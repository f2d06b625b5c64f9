package caches

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Tasks that join a group use it on every CPU: in each cache, they have the group's ways
// there. So the group of a claim whose containers join it serves no other claim, also not
// in other caches. There it has the ways and the limit of the default group, as all tasks
// on shared CPUs do.

// Use is a group that a claim has in a cache.
type Use struct {
	Key
	Joined bool // as in [Holding]
}

// GroupFor returns the number of a group for a claim that has nothing yet of a cache. own
// is what the claim has of other caches, and held what all other claims have. An error says
// that no group is free: another tool has taken a class since the claim was allocated, or
// containers join groups of claims of other caches.
func (n *Node) GroupFor(ask Ask, joined bool, own, held []Use) (group int, err error) {
	if ask.Pool == ways.Shared {
		return groupShared, nil
	}
	inUse := func(group int) bool {
		isUse := func(u Use) bool { return u.Group == group && (u.Cache == ask.Cache || u.Joined || joined) }
		return slices.ContainsFunc(own, isUse) || slices.ContainsFunc(held, isUse)
	}
	var used []int
	for _, use := range slices.Concat(own, held) {
		if use.Group != groupShared {
			used = append(used, use.Group)
		}
	}
	numbers := n.classNumbers(used)
	if !joined {
		for _, group := range numbers {
			if !inUse(group) {
				return group, nil
			}
		}
		return 0, fmt.Errorf("no class is left in cache %d: claims use all %d", ask.Cache, n.classes())
	}
	// A container joins only one group, so all of the claim's caches have the same one.
	for _, use := range own {
		if use.Joined && use.Cache != ask.Cache && use.Group != groupShared {
			return use.Group, nil
		}
	}
	// Other claims take the lowest group, so the highest ones stay free in all caches.
	for _, group := range slices.Backward(numbers) {
		if !inUse(group) {
			return group, nil
		}
	}
	return 0, fmt.Errorf("no class is left that no claim uses in any cache: a mixed claim needs such a class, and claims use all %d", n.classes())
}

// limitElsewhere sets the bandwidth of a group in those caches in which the claims that
// join it have no ways.
func (n *Node) limitElsewhere(schemata *numa.Schemata, group int, held []Holding) {
	for i := range schemata.Bandwidths {
		b := &schemata.Bandwidths[i]
		isHeld := func(h Holding) bool { return h.Key() == Key{b.Cache, group} }
		if limit := n.unclaimed.osLimit; limit != 0 && !slices.ContainsFunc(held, isHeld) {
			b.Bandwidth = n.Bandwidth.Schemata(limit)
		}
	}
}

// Lost returns how many classes of each cache other claims cannot have, because containers
// join them that have ways of other caches.
func (n *Node) Lost(held []Holding) map[int]int {
	lost := make(map[int]int)
	for i, h := range held {
		if !h.Joined || h.Pool == ways.Shared {
			continue
		}
		isOf := func(cache int) func(Holding) bool {
			return func(other Holding) bool { return other.Group == h.Group && other.Cache == cache }
		}
		if slices.ContainsFunc(held[:i], func(other Holding) bool { return other.Joined && other.Group == h.Group }) {
			continue // counted with the first one
		}
		for _, cache := range n.cacheIDs {
			if !slices.ContainsFunc(held, isOf(cache)) {
				lost[cache]++
			}
		}
	}
	return lost
}

// withdrawn returns the pools without the classes that are lost in some caches; see
// [Node.Lost].
func (n *Node) withdrawn(lost map[int]int) []Pool {
	pools := slices.Clone(n.Pools)
	for cache, count := range lost {
		var parts []part
		free := -count
		for i := range pools {
			if pools[i].Cache == cache && pools[i].Name != ways.Shared {
				parts = append(parts, part{pool: pools[i].Name, given: pools[i].Classes})
				free += pools[i].Classes
			}
		}
		if len(parts) == 0 {
			continue
		}
		withdraw(free, parts)
		for i := range pools {
			for _, p := range parts {
				if pools[i].Cache == cache && pools[i].Name == p.pool {
					pools[i].Classes = p.given
				}
			}
		}
	}
	return pools
}
