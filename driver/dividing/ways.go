package dividing

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// holdings returns what a grant has of caches, with the CPUs that it is for.
func holdings(grant ledger.Grant) []caches.Holding { return appendHoldings(nil, &grant) }

// appendHoldings appends what holdings returns. A holding has a set of CPUs, which is
// 1 KiB, so it is made in its place.
func appendHoldings(list []caches.Holding, grant *ledger.Grant) []caches.Holding {
	for _, share := range grant.Shares {
		cache := share.Cache()
		if cache == nil {
			continue
		}
		list = append(list, caches.Holding{Group: cache.Group, Joined: grant.Joins(cache), Ask: caches.Ask{
			Device: share.Device, Cache: cache.L3, Pool: cache.Pool, MinWays: cache.Ways, MaxWays: cache.Most(),
			Bandwidth: cache.BandwidthPercent + cache.BandwidthMBps, // one of them is 0
		}})
		h := &list[len(list)-1]
		switch {
		case cache.BandwidthPercent != 0:
			h.Unit = deviceclasses.CapacityBandwidthPercent
		case cache.BandwidthMBps != 0:
			h.Unit = deviceclasses.CapacityBandwidthMBps
		}
		for _, other := range grant.Shares {
			if other.Request == cache.CPUs {
				h.CPUs = h.CPUs.Union(other.CPUs())
			}
		}
	}
	return list
}

// allHoldings returns what all grants have, the oldest first.
func allHoldings(recorded ledger.List) []caches.Holding {
	grants := slices.Clone(recorded)
	slices.SortFunc(grants, func(a, b *ledger.Listed) int { return ledger.ByAge(a.Grant, b.Grant) })
	list := make([]caches.Holding, 0, len(grants))
	for _, grant := range grants {
		list = appendHoldings(list, &grant.Grant)
	}
	return list
}

// Give gives the claims of a grant's caches their ways, and returns why this grant
// does not have them. It compares with the groups as they were last seen, at most a second
// ago, because reading all of them takes longer than all else of Prepare.
func (v *State) Give(grant ledger.Grant, recorded ledger.List) error {
	if _, err := v.caches.Get(); err != nil {
		return err
	}
	own := holdings(grant)
	goal := v.caches.node.GoalIn(cachesIn(grant), allHoldings(recorded), v.groups)
	if len(goal.Moves) > 1 {
		if err := v.config.Host.Move(goal.Moves); err != nil {
			return err
		}
	}
	failed := v.settleWays(goal, own)
	for i := range own {
		if err := goal.Check(&own[i], v.groups); err != nil && failed != nil {
			return fmt.Errorf("%w: %w", err, message.Joined(failed))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Take gives back the ways of a grant that has ended. What fails is repaired later: no
// pod has to wait for it.
func (v *State) Take(ended ledger.Grant, recorded ledger.List) {
	if len(cachesIn(ended)) == 0 {
		return
	}
	if _, err := v.caches.Get(); err == nil {
		_ = v.settleWays(v.caches.node.GoalIn(cachesIn(ended), allHoldings(recorded), v.groups), nil) // repair reports what is wrong
	}
}

// cachesIn returns the ids of the caches that a grant has a part of.
func cachesIn(grant ledger.Grant) (ids []int) {
	for _, share := range grant.Shares {
		if cache := share.Cache(); cache != nil {
			ids = append(ids, cache.L3)
		}
	}
	return ids
}

// settleWays writes the groups that differ from the goal, and those of some holdings. It
// takes what the kernel made of them.
func (v *State) settleWays(goal caches.Goal, own []caches.Holding) error {
	v.forgoExclusive(goal.Wanted)
	wanted := goal.Differing(v.groups, own)
	wanted.Groups = slices.DeleteFunc(wanted.Groups, func(g resctrl.Group) bool {
		_, found := v.groups.Group(g.Name)
		return !found // Repair makes it, and no pod waits for it
	})
	if len(wanted.Groups) == 0 {
		return nil
	}
	report, err := v.config.Host.ApplyTo(v.groups, wanted)
	v.noteShareable(wanted, report)
	for _, group := range report.State.Groups {
		if i := slices.IndexFunc(v.groups.Groups, func(g numa.ResctrlGroup) bool { return g.Name == group.Name }); i >= 0 {
			v.groups.Groups[i] = group
		} else {
			v.groups.Groups = append(v.groups.Groups, group)
		}
	}
	return err
}

// noteShareable remembers which of the wanted groups the kernel did not make exclusive.
func (v *State) noteShareable(wanted resctrl.Wanted, report resctrl.Report) {
	if v.shareable == nil {
		v.shareable = make(map[string]numa.Schemata)
	}
	for i := range wanted.Groups {
		group := &wanted.Groups[i]
		refused := slices.ContainsFunc(report.Shared, func(m resctrl.Missing) bool { return m.Group == group.Name })
		if refused {
			v.shareable[group.Name] = group.Schemata
		} else if group.Exclusive {
			delete(v.shareable, group.Name)
		}
	}
}

// forgoExclusive does not ask the kernel again for what it has refused to make exclusive.
func (v *State) forgoExclusive(wanted resctrl.Wanted) {
	for i := range wanted.Groups {
		group := &wanted.Groups[i]
		if refused, known := v.shareable[group.Name]; known && reflect.DeepEqual(refused, group.Schemata) {
			group.Exclusive = false
		}
	}
}

// withdrawClasses takes the classes from the published devices that claims with these
// holdings keep from claims of other caches.
func (v *State) withdrawClasses(held []caches.Holding) {
	lost := v.caches.node.Lost(held)
	if maps.Equal(lost, v.caches.lost) {
		return
	}
	next := *v.caches
	next.lost = lost
	next.describe()
	v.caches = &next
}
