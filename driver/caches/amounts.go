package caches

import (
	"cmp"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// amounts are what claims of a pool can ask for, and what those get that ask for nothing.
type amounts struct {
	least     int   // ways, ≥ min_cbm_bits
	valid     []int // numbers of ways, ascending; nil for all from least on
	ways      int   // of a claim that asks for none; in the pool besteffort its minimum
	maxWays   int   // of such a claim in the pool besteffort, else 0
	bandwidth int   // of a claim that asks for none; 0 if the kernel does not limit it
}

func guaranteed(p *deviceclasses.GuaranteedPool, least int, b *Bandwidth) amounts {
	a := amounts{least: least, ways: p.DefaultWays, bandwidth: usual(&p.ExclusivePool, b)}
	if len(p.ValidWays) > 0 {
		a.valid, a.least = p.ValidWays, p.ValidWays[0]
	}
	a.ways = cmp.Or(a.ways, a.least)
	return a
}

func bestEffort(p *deviceclasses.BestEffortPool, least int, b *Bandwidth) amounts {
	return amounts{
		least: least, ways: cmp.Or(p.DefaultMinWays, least), maxWays: cmp.Or(p.DefaultMaxWays, p.Ways),
		bandwidth: usual(&p.ExclusivePool, b),
	}
}

// usual returns the bandwidth of a claim that asks for none.
func usual(p *deviceclasses.ExclusivePool, b *Bandwidth) int {
	if b == nil {
		return 0
	}
	configured := defaultLimit(p).of(b)
	if configured == 0 {
		return b.Max
	}
	return b.Round(configured)
}

func defaultLimit(p *deviceclasses.ExclusivePool) unitLimits {
	return unitLimits{"defaultBandwidthPercent", p.DefaultBandwidthPercent, "defaultBandwidthMBps", p.DefaultBandwidthMBps}
}

// checkAmounts refuses amounts that the kernel of this node does not take. least is the
// smallest number of ways of a mask.
func checkAmounts(pools deviceclasses.CachePools, least int, b *Bandwidth) error {
	tooFew := func(field string, ways int) error {
		if ways == 0 || ways >= least {
			return nil
		}
		return fmt.Errorf("%s: %d, allowed are %d or more, because a mask has at least as many ways (min_cbm_bits)", field, ways, least)
	}
	if p := pools.Guaranteed; p != nil {
		if err := cmp.Or(tooFew("cache.guaranteed.defaultWays", p.DefaultWays), defaultLimit(&p.ExclusivePool).check("cache.guaranteed.", b)); err != nil {
			return err
		}
		for i, ways := range p.ValidWays {
			if err := tooFew(fmt.Sprintf("cache.guaranteed.validWays[%d]", i), ways); err != nil {
				return err
			}
		}
	}
	if p := pools.BestEffort; p != nil {
		return cmp.Or(tooFew("cache.besteffort.defaultMinWays", p.DefaultMinWays), defaultLimit(&p.ExclusivePool).check("cache.besteffort.", b))
	}
	return nil
}

// unitLimits is a limit of bandwidth in each unit that nodes count, with the names of its
// fields; 0 for none. With both, that of the node's unit counts.
type unitLimits struct {
	percentField string
	percent      int
	mbpsField    string
	mbps         int
}

// of returns the limit in the unit of the node.
func (l unitLimits) of(b *Bandwidth) int {
	if b.Capacity == deviceclasses.CapacityBandwidthMBps {
		return l.mbps
	}
	return l.percent
}

// check refuses a limit that has no effect on this node.
func (l unitLimits) check(pool string, b *Bandwidth) error {
	field, value := l.percentField, l.percent
	if value == 0 {
		field, value = l.mbpsField, l.mbps
	}
	switch {
	case value == 0:
		return nil
	case b == nil:
		return fmt.Errorf("%s%s: %d, but the kernel of this node does not limit bandwidth", pool, field, value)
	case l.of(b) != 0:
		return nil
	case b.Capacity == deviceclasses.CapacityBandwidthMBps:
		return fmt.Errorf("%s%s: %d, but this node counts MBps, allowed is %s", pool, field, value, l.mbpsField)
	}
	return fmt.Errorf("%s%s: %d, but this node counts percent, allowed is %s", pool, field, value, l.percentField)
}
