package caches

import (
	"fmt"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// unclaimed is what belongs to the pools that no claim asks for: os, reserved and infra.
// Limits of bandwidth are as [Bandwidth.Round] returns them, or 0 for none.
type unclaimed struct {
	infra, reserved                    cpuset.Set // the CPUs of the two groups
	osLimit, reservedLimit, infraLimit int
}

// unclaimedOf reads what the operator says about these pools. reserved are the CPUs that
// no claim gets.
func unclaimedOf(pools deviceclasses.CachePools, reserved cpuset.Set, b *Bandwidth) (u unclaimed, err error) {
	os := ptr.Deref(pools.OS, deviceclasses.CacheWays{})
	if u.osLimit, err = limitOf("cache.os.", &os, b); err != nil {
		return unclaimed{}, err
	}
	if p := pools.Infra; p != nil {
		if u.infra, err = cpuset.Parse(p.CPUs); err != nil {
			return unclaimed{}, fmt.Errorf("cache.infra.cpus: %w", err)
		}
		if others := u.infra.Difference(reserved); !others.IsEmpty() {
			return unclaimed{}, fmt.Errorf("cache.infra.cpus: %s are not reserved, so claims may get them: allowed are some of %q", others, reserved)
		}
		if u.infraLimit, err = limitOf("cache.infra.", &p.CacheWays, b); err != nil {
			return unclaimed{}, err
		}
	}
	if p := pools.Reserved; p != nil {
		if u.reserved = reserved.Difference(u.infra); u.reserved.IsEmpty() {
			return unclaimed{}, fmt.Errorf("cache.reserved: no CPU is left for it: CPUs %q are reserved, and infra has %q", reserved, u.infra)
		}
		u.reservedLimit, err = limitOf("cache.reserved.", p, b)
	}
	return u, err
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

// unclaimedGroups returns the groups of reserved and infra. A claim that was prepared
// before its CPUs were reserved keeps them.
func (n *Node) unclaimedGroups(held []Holding) (groups []resctrl.Group) {
	var claimed cpuset.Set
	for _, h := range held {
		claimed = claimed.Union(h.CPUs)
	}
	if n.Masks.Infra != 0 {
		groups = append(groups, resctrl.Group{
			Name: resctrl.Name(groupInfra), CPUs: n.unclaimed.infra.Difference(claimed), Joined: true, // administrators may put tasks into it
			Schemata: n.limited(n.everywhere(n.Masks.Infra, true), n.unclaimed.infraLimit),
		})
	}
	if n.Masks.Reserved != 0 {
		groups = append(groups, resctrl.Group{
			Name: resctrl.Name(groupReserved), CPUs: n.unclaimed.reserved.Difference(claimed),
			Schemata: n.limited(n.everywhere(n.Masks.Reserved, true), n.unclaimed.reservedLimit),
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
