package caches

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// unclaimed is what belongs to the pools that no claim asks for. Limits of bandwidth are as
// [Bandwidth.Round] returns them, or 0 for none.
type unclaimed struct {
	osLimit int
	groups  []unclaimedGroup // of infra, groups and reserved
}

// unclaimedGroup is a group of resctrl for CPUs that no claim gets.
type unclaimedGroup struct {
	name   string
	cpus   cpuset.Set
	mask   ways.Mask
	limit  int
	joined bool // administrators may put tasks into it
}

// unclaimedOf reads what the operator says about these pools. reserved are the CPUs that
// no claim gets.
func unclaimedOf(pools deviceclasses.CachePools, masks ways.Pools, reserved cpuset.Set, b *Bandwidth) (u unclaimed, err error) {
	os := ptr.Deref(pools.OS, deviceclasses.CacheWays{})
	if u.osLimit, err = limitOf("cache.os.", &os, b); err != nil {
		return unclaimed{}, err
	}
	rest := reserved
	named := func(field, group, list string, mask ways.Mask, p *deviceclasses.CacheWays) error {
		cpus, err := cpuset.Parse(list)
		if err != nil {
			return fmt.Errorf("%s.cpus: %w", field, err)
		}
		if others := cpus.Difference(reserved); !others.IsEmpty() {
			return fmt.Errorf("%s.cpus: %s are not reserved, so claims may get them: allowed are some of %q", field, others, reserved)
		}
		limit, err := limitOf(field+".", p, b)
		u.groups, rest = append(u.groups, unclaimedGroup{group, cpus, mask, limit, true}), rest.Difference(cpus)
		return err
	}
	if p := pools.Infra; p != nil {
		if err := named("cache.infra", resctrl.Name(groupInfra), p.CPUs, masks.Infra, &p.CacheWays); err != nil {
			return unclaimed{}, err
		}
	}
	for i := range pools.Groups {
		g := &pools.Groups[i]
		if err := named("cache."+ways.GroupField(i), resctrl.NameOf(g.Name), g.CPUs, masks.Groups[i], &g.CacheWays); err != nil {
			return unclaimed{}, err
		}
	}
	if p := pools.Reserved; p != nil {
		if rest.IsEmpty() {
			return unclaimed{}, fmt.Errorf("cache.reserved: no CPU is left for it: infra and groups have all reserved CPUs, %q", reserved)
		}
		limit, err := limitOf("cache.reserved.", p, b)
		if err != nil {
			return unclaimed{}, err
		}
		u.groups = append(u.groups, unclaimedGroup{resctrl.Name(groupReserved), rest, masks.Reserved, limit, false})
	}
	return u, nil
}

func limitOf(pool string, p *deviceclasses.CacheWays, b *Bandwidth) (int, error) {
	limit := unitLimits{string(deviceclasses.CapacityBandwidthPercent), p.BandwidthPercent, string(deviceclasses.CapacityBandwidthMBps), p.BandwidthMBps}
	if err := limit.check(pool, b); err != nil || b == nil {
		return 0, err
	}
	if configured := limit.of(b); configured != 0 {
		return b.Round(configured), nil
	}
	return 0, nil
}

// unclaimedGroups returns the groups of CPUs that no claim gets. A claim that was prepared
// before its CPUs were reserved keeps them.
func (n *Node) unclaimedGroups(held []Holding) (groups []resctrl.Group) {
	var claimed cpuset.Set
	for _, h := range held {
		claimed = claimed.Union(h.CPUs)
	}
	for i := range n.unclaimed.groups {
		g := &n.unclaimed.groups[i]
		groups = append(groups, resctrl.Group{
			Name: g.name, CPUs: g.cpus.Difference(claimed), Joined: g.joined,
			Schemata: n.limited(n.everywhere(g.mask, true), g.limit),
		})
	}
	return groups
}

// defaultGroup returns what the default group should have. Without a limit, its bandwidth
// stays as it is.
func (n *Node) defaultGroup() numa.Schemata {
	limit := n.unclaimed.osLimit
	return n.limited(n.everywhere(n.Masks.OS, limit != 0), limit)
}

// limited limits the bandwidths of a group; 0 is no limit.
func (n *Node) limited(schemata numa.Schemata, limit int) numa.Schemata {
	for i := range schemata.Bandwidths {
		if limit != 0 {
			schemata.Bandwidths[i].Bandwidth = n.Bandwidth.Schemata(limit)
		}
	}
	return schemata
}
