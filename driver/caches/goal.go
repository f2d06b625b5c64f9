package caches

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// The groups of resctrl have these numbers. A group of a class has a mask in each cache, so
// it serves one claim in each. All groups are made at the start and kept, so that what the
// scheduler counts is there.
const (
	groupInfra  = 0
	groupShared = 1
	firstGroup  = 2 // of the classes

	// groupReserved is more than the number of any class, which claims have on record.
	groupReserved = 1<<16 + 1
)

// Holding is what a claim has of a cache.
type Holding struct {
	Ask
	Group int                       // number of its group; see [Node.GroupFor]
	CPUs  cpuset.Set                // that have the ways
	Unit  resourceapi.QualifiedName // of its bandwidth, the capacity; empty without a limit

	// Joined says that containers join the group, because they also run on other CPUs.
	Joined bool
}

// Key is what no two holdings have in common, except for those of the pool shared.
type Key struct{ Cache, Group int }

// Key returns the cache and the group.
func (h *Holding) Key() Key { return Key{h.Cache, h.Group} }

// isLimited reports whether the bandwidth of a claim has a limit that this node knows.
func (n *Node) isLimited(h *Holding) bool {
	return h.Unit != "" && n.Bandwidth != nil && n.Bandwidth.Capacity == h.Unit
}

// Goal is what the groups of resctrl should have.
type Goal struct {
	Wanted resctrl.Wanted
	// Moves are the masks of claims that change, in an order in which they never overlap.
	Moves []resctrl.Move

	node    *Node
	classes classGroups // those of Wanted that claims have
	// faults say of caches why their claims cannot have what they should.
	faults map[int]error
}

// classes returns how many claims can have a class in one cache.
func (n *Node) classes() (sum int) {
	for i := range n.Pools {
		if n.Pools[i].Cache == n.Pools[0].Cache {
			sum += n.Pools[i].Classes
		}
	}
	return sum
}

// Goal returns what the groups should have so that claims have what they hold, the oldest
// first. Claims of the same pool have their ways side by side, and move as little as
// possible from where they are in state. A cache whose claims need more ways than other
// tools leave keeps its masks; see [Goal.Check].
func (n *Node) Goal(held []Holding, state numa.ResctrlState) Goal {
	return n.GoalIn(n.cacheIDs, held, state)
}

// GoalIn is Goal after the claims of some caches have changed. The masks of other caches
// stay as they are in state.
func (n *Node) GoalIn(changed []int, held []Holding, state numa.ResctrlState) Goal {
	goal := Goal{node: n, faults: make(map[int]error)}
	if n.restore && len(held) == 0 {
		goal.Wanted = resctrl.Wanted{Default: n.everywhere(ways.Mask(n.cache.Mask), true), Caches: n.caches}
		return goal
	}
	goal.Wanted = resctrl.Wanted{Default: n.defaultGroup(), Caches: n.caches}
	numbers := n.groupsOf(held)
	groups := n.unclaimedGroups(held)
	first := len(groups)
	groups = slices.Grow(groups, len(numbers)) // a set of CPUs is 1 KiB
	for _, number := range numbers {
		mask := n.Masks.OS // a group without a claim, or whose pool is gone, must not overlap those of claims
		if number == groupShared && n.Masks.Shared != 0 {
			mask = n.Masks.Shared
		}
		groups = append(groups, resctrl.Group{Name: resctrl.Name(number), Schemata: n.everywhere(mask, true)})
	}
	goal.Wanted.Groups = groups
	goal.classes = classGroups{numbers, groups[first:]}
	claimed := make([]int, len(numbers)) // in how many caches the group has a claim
	for i := range held {
		h := &held[i]
		at := goal.classes.index(h.Group)
		group := &goal.classes.groups[at]
		group.CPUs = group.CPUs.Union(h.CPUs.Intersection(n.cpusOf(h.Cache))) // the class of another cache may be another claim's
		group.Joined = group.Joined || h.Joined
		if h.Pool != ways.Shared {
			n.limit(&group.Schemata, h)
			claimed[at]++
		}
	}
	for i, number := range numbers {
		group := &goal.classes.groups[i]
		if group.Joined && number != groupShared {
			n.limitElsewhere(&group.Schemata, number, held)
		}
		group.Exclusive = n.Masks.Infra == 0 && claimed[i] == len(n.cacheIDs) && n.cache.ShareableMask != n.cache.Mask
	}
	for _, cache := range n.cacheIDs {
		if slices.Contains(changed, cache) {
			goal.arrange(cache, held, state)
		} else {
			goal.leave(cache, state)
		}
	}
	return goal
}

// cpusOf returns the CPUs of a cache.
func (n *Node) cpusOf(cache int) cpuset.Set {
	for i := range n.caches {
		if n.caches[i].ID == cache {
			return n.caches[i].CPUs
		}
	}
	return cpuset.Set{}
}

// groupsOf returns the numbers of the groups of shared and of classes, ascending.
func (n *Node) groupsOf(held []Holding) []int {
	used := make([]int, 0, 1+n.classes()+len(held))
	shared := n.Masks.Shared != 0
	for i := range held {
		if held[i].Group == groupShared {
			shared = true
		} else {
			used = append(used, held[i].Group)
		}
	}
	numbers := n.classNumbers(used)
	if shared {
		numbers = slices.Insert(numbers, 0, groupShared)
	}
	return numbers
}

// classNumbers returns the numbers of the groups of classes, ascending: those in use, which may
// be from before there were fewer classes, and then the lowest, as many as there are classes.
func (n *Node) classNumbers(used []int) []int {
	slices.Sort(used)
	numbers, classes := slices.Compact(used), n.classes()
	for number := firstGroup; len(numbers) < classes; number++ {
		if at, found := slices.BinarySearch(numbers, number); !found {
			numbers = slices.Insert(numbers, at, number)
		}
	}
	return numbers
}

// classGroups are the groups of classes, by number.
type classGroups struct {
	numbers []int // ascending
	groups  []resctrl.Group
}

func (c classGroups) index(number int) int {
	at, _ := slices.BinarySearch(c.numbers, number)
	return at
}

// everywhere returns a mask in each cache, and no limit of bandwidth if that is wanted.
func (n *Node) everywhere(mask ways.Mask, unlimited bool) (schemata numa.Schemata) {
	for _, cache := range n.cacheIDs {
		for _, resource := range n.Resources {
			schemata.Masks = append(schemata.Masks, numa.CacheMask{Resource: resource, Cache: cache, Mask: uint64(mask)})
		}
		if unlimited && n.Bandwidth != nil {
			schemata.Bandwidths = append(schemata.Bandwidths, numa.CacheBandwidth{Resource: bandwidthResource, Cache: cache, Bandwidth: n.Bandwidth.Schemata(n.Bandwidth.Max)})
		}
	}
	return schemata
}

// limit sets the bandwidth of a claim.
func (n *Node) limit(schemata *numa.Schemata, h *Holding) {
	for i := range schemata.Bandwidths {
		if b := &schemata.Bandwidths[i]; b.Cache == h.Cache && n.isLimited(h) {
			b.Bandwidth = n.Bandwidth.Schemata(h.Bandwidth)
		}
	}
}

// arrange sets the masks of one cache.
func (g *Goal) arrange(cache int, held []Holding, state numa.ResctrlState) {
	var changes []ways.Change
	for i := range g.node.Pools {
		pool := &g.node.Pools[i]
		if pool.Cache != cache || pool.Name == ways.Shared {
			continue
		}
		var claims []ways.Claim
		var groups []*resctrl.Group
		for i := range held {
			if h := &held[i]; h.Device == pool.Device {
				group := &g.classes.groups[g.classes.index(h.Group)]
				groups = append(groups, group)
				claims = append(claims, ways.Claim{ID: group.Name, Min: h.MinWays, Max: h.MaxWays, Mask: g.node.present(h, group.Name, state)})
			}
		}
		arranged, err := pool.Area.Arrange(claims)
		if err != nil {
			g.faults[cache] = fmt.Errorf("%s: %w", pool.Device, err)
			for i, claim := range claims {
				if claim.Mask != 0 { // it stays as it is
					g.node.set(&groups[i].Schemata, cache, claim.Mask)
				}
			}
			continue
		}
		for i, change := range arranged {
			g.node.set(&groups[i].Schemata, cache, change.Wanted)
		}
		changes = append(changes, arranged...)
	}
	plan, err := ways.Order(g.node.cache, changes)
	if err != nil {
		return // the writer of the masks finds an order: it takes CPUs from a group for a while
	}
	for _, write := range plan {
		g.Moves = append(g.Moves, resctrl.Move{Group: write.ID, Schemata: g.node.masks(cache, write.To)})
	}
}

// leave takes the masks of one cache as they are.
func (g *Goal) leave(cache int, state numa.ResctrlState) {
	for i := range g.classes.groups {
		group := &g.classes.groups[i]
		now, found := state.Group(group.Name)
		if !found {
			continue
		}
		for j := range group.Schemata.Masks {
			mask := &group.Schemata.Masks[j]
			if ways, online := now.Schemata.Mask(mask.Resource, mask.Cache); online && mask.Cache == cache {
				mask.Mask = ways
			}
		}
	}
}

// present returns the mask that a claim has; 0 if its group has none of its CPUs yet.
func (n *Node) present(h *Holding, name string, state numa.ResctrlState) ways.Mask {
	group, found := state.Group(name)
	if !found || !group.CPUs.Overlaps(h.CPUs) {
		return 0
	}
	mask, _ := group.Schemata.Mask(n.Resources[0], h.Cache)
	return ways.Mask(mask)
}

// set changes the mask of a cache.
func (n *Node) set(schemata *numa.Schemata, cache int, mask ways.Mask) {
	for i := range schemata.Masks {
		if schemata.Masks[i].Cache == cache {
			schemata.Masks[i].Mask = uint64(mask)
		}
	}
}

// masks returns a mask of one cache.
func (n *Node) masks(cache int, mask ways.Mask) (schemata numa.Schemata) {
	for _, resource := range n.Resources {
		schemata.Masks = append(schemata.Masks, numa.CacheMask{Resource: resource, Cache: cache, Mask: uint64(mask)})
	}
	return schemata
}

// ForeignGroups returns the groups that other tools made. A group without CPUs and tasks
// uses no ways.
func ForeignGroups(state numa.ResctrlState) (foreign []Group) {
	for _, group := range state.Groups {
		if group.Name == "" || resctrl.IsOurs(group.Name) {
			continue
		}
		other := Group{Name: group.Name, Masks: make(map[int]ways.Mask)}
		inUse := !group.CPUs.IsEmpty() || group.Tasks != numa.NoTasks || group.Mode == numa.ModeLocked || group.Mode == numa.ModeExclusive
		for _, mask := range group.Schemata.Masks {
			if inUse && isLevel3(mask.Resource) {
				other.Masks[mask.Cache] |= ways.Mask(mask.Mask)
			}
		}
		foreign = append(foreign, other)
	}
	return foreign
}
