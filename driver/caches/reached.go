package caches

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Differing returns what is wanted of the groups that are not as they should be in state,
// and of those of some claims.
func (g *Goal) Differing(state numa.ResctrlState, of []Holding) resctrl.Wanted {
	wanted, online := g.Wanted, state.Online()
	wanted.Groups = nil
	for i := range g.Wanted.Groups {
		group := &g.Wanted.Groups[i]
		isOwn := func(h Holding) bool { return resctrl.Name(h.Group) == group.Name }
		if now, found := state.Group(group.Name); !found || slices.ContainsFunc(of, isOwn) || !isAs(&now, group, online) {
			wanted.Groups = append(wanted.Groups, *group)
		}
	}
	return wanted
}

// Reached reports whether all groups are as they should be, so that nothing has to be
// written.
func (g *Goal) Reached(state numa.ResctrlState) bool {
	root, _ := state.Group("")
	unwanted := func(group numa.ResctrlGroup) bool {
		return resctrl.IsOurs(group.Name) && !slices.ContainsFunc(g.Wanted.Groups, func(w resctrl.Group) bool { return w.Name == group.Name })
	}
	return has(root.Schemata, g.Wanted.Default) && !slices.ContainsFunc(state.Groups, unwanted) && len(g.Differing(state, nil).Groups) == 0
}

// isAs reports whether a group has what it should. What is offline does not count.
func isAs(now *numa.ResctrlGroup, want *resctrl.Group, online cpuset.Set) bool {
	return now.CPUs == want.CPUs.Intersection(online) && has(now.Schemata, want.Schemata) && (now.Mode == numa.ModeExclusive) == want.Exclusive
}

// has reports whether a group has what is wanted of the caches that are online.
func has(now, want numa.Schemata) bool {
	for _, mask := range want.Masks {
		if has, online := now.Mask(mask.Resource, mask.Cache); online && has != mask.Mask {
			return false
		}
	}
	for _, limit := range want.Bandwidths {
		if has, online := now.Bandwidth(limit.Resource, limit.Cache); online && has != limit.Bandwidth {
			return false
		}
	}
	return true
}

// Missing returns the classes and the groups of shared, of each cache, that the kernel does not
// have, although the scheduler counts them.
func (g *Goal) Missing(state numa.ResctrlState) (missing []Key) {
	for _, number := range g.classes.numbers {
		if _, found := state.Group(resctrl.Name(number)); found || g.node.restore {
			continue // with restore, nothing is published
		}
		for _, cache := range g.node.cacheIDs {
			missing = append(missing, Key{cache, number})
		}
	}
	return missing
}

// Undone says which groups of CPUs that no claim gets the kernel does not have.
func (g *Goal) Undone(state numa.ResctrlState) (undone []string) {
	for i := range len(g.Wanted.Groups) - len(g.classes.numbers) {
		name := g.Wanted.Groups[i].Name
		if _, found := state.Group(name); !found {
			undone = append(undone, "the kernel has no group "+name)
		}
	}
	return undone
}

// Check says why a claim does not have what it holds; nil if it does. State is that of the
// kernel after the goal was written.
func (g *Goal) Check(h *Holding, state numa.ResctrlState) error {
	if err := g.faults[h.Cache]; err != nil {
		return err
	}
	if !slices.ContainsFunc(g.node.Pools, func(p Pool) bool { return p.Device == h.Device }) {
		return fmt.Errorf("this node has no pool %s any more", h.Device)
	}
	if h.Unit != "" && !g.node.isLimited(h) {
		return fmt.Errorf("the kernel does not limit bandwidth by %s any more", h.Unit)
	}
	name := resctrl.Name(h.Group)
	group, found := state.Group(name)
	if !found {
		return fmt.Errorf("the kernel has no group %s", name)
	}
	cpus := h.CPUs.Intersection(state.Online())
	if elsewhere := cpus.Difference(g.node.cpusOf(h.Cache)); !elsewhere.IsEmpty() {
		return fmt.Errorf("cpus %s of the claim are not those of cache %d", elsewhere, h.Cache)
	}
	if !cpus.IsSubsetOf(group.CPUs) {
		return fmt.Errorf("group %s has cpus %s, want %s", name, group.CPUs, cpus)
	}
	if cpus.IsEmpty() {
		return errors.New("all of its CPUs are offline")
	}
	i := slices.IndexFunc(g.Wanted.Groups, func(wanted resctrl.Group) bool { return wanted.Name == name })
	for _, want := range g.Wanted.Groups[i].Schemata.Masks {
		if now, online := group.Schemata.Mask(want.Resource, want.Cache); want.Cache == h.Cache && online && now != want.Mask {
			return fmt.Errorf("group %s has ways %x of %s %d, want %x", name, now, want.Resource, want.Cache, want.Mask)
		}
	}
	for _, want := range g.Wanted.Groups[i].Schemata.Bandwidths {
		now, online := group.Schemata.Bandwidth(want.Resource, want.Cache)
		if want.Cache == h.Cache && online && now != want.Bandwidth {
			return fmt.Errorf("group %s has bandwidth %d of %s %d, want %d", name, now, want.Resource, want.Cache, want.Bandwidth)
		}
	}
	return nil
}
