package ways

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Config says how many ways of a cache each pool has. 0 means that there is no such
// pool, except for OS.
type Config struct {
	OS         int   // ≥ min_cbm_bits: what runs outside of claims has them to itself
	Infra      int   // ≤ ways of the cache - OS - Reserved - Groups; shared with claims of all kinds
	Guaranteed int   // each claim has the number of ways that it asked for
	BestEffort int   // claims grow and shrink between a minimum and a maximum
	Shared     int   // all members have the same ways
	Reserved   int   // what runs on the CPUs that no claim gets has them to itself
	Groups     []int // what runs on some of these CPUs has them to itself
}

// Pools are the masks of a cache's pools, 0 for a pool that does not exist. All but
// Infra are disjoint. Infra overlaps all but OS, Reserved and Groups.
type Pools struct {
	OS, Infra, Guaranteed, BestEffort, Shared, Reserved Mask

	Groups []Mask // as in the Config
}

// Divide returns the pools of a cache. OS has the lowest ways, and Reserved and then Groups
// the next ones. Infra has the highest, so that it overlaps the guaranteed pool least. Each of Guaranteed, BestEffort and Shared,
// in this order, has the lowest ways that let the next ones fit. Guaranteed and
// BestEffort never have ways that devices use too (shareable_bits), unless devices use all
// ways. If the cache does
// not take sparse masks, each pool is one run of ways.
//
// An error names the numbers of ways that do not fit.
func Divide(cache numa.CacheAllocation, c Config) (Pools, error) {
	all := Mask(cache.Mask)
	fail := func(err error) (Pools, error) {
		return Pools{}, fmt.Errorf("divide the %d ways of %s: %w", all.Ways(), cache.Name, err)
	}
	if all == 0 || all != run(0, all.Ways()) {
		return fail(fmt.Errorf("cbm_mask %s is not one run from way 0", all))
	}
	if err := c.check(&cache); err != nil {
		return fail(err)
	}
	p := Pools{OS: all.lowest(c.OS), Infra: run(all.end()-c.Infra, c.Infra)}
	left := all &^ p.OS
	p.Reserved = left.lowest(c.Reserved)
	left &^= p.Reserved
	for i, ways := range c.Groups {
		p.Groups = append(p.Groups, left.lowest(ways))
		left &^= p.Groups[i]
	}
	exclusive := left &^ devices(&cache)
	if n := exclusive.Ways(); c.Guaranteed+c.BestEffort > n {
		return fail(fmt.Errorf("%s: %d are left without %s and the shareable bits %s",
			sum(c.exclusive()), n, list(c.others(), ", "), Mask(cache.ShareableMask)))
	}
	if cache.Sparse {
		p.Guaranteed = exclusive.lowest(c.Guaranteed)
		p.BestEffort = (exclusive &^ p.Guaranteed).lowest(c.BestEffort)
		p.Shared = (left &^ p.Guaranteed &^ p.BestEffort).lowest(c.Shared)
		return p, nil
	}
	sites := []site{
		{&p.Guaranteed, c.Guaranteed, exclusive}, {&p.BestEffort, c.BestEffort, exclusive}, {&p.Shared, c.Shared, left},
	}
	if !settle(sites, left) {
		return fail(fmt.Errorf("no runs of ways for %s: %s and the shareable bits %s leave runs of %s ways",
			list(append(c.exclusive(), amount{Shared, c.Shared}), ", "), list(c.others(), ", "), Mask(cache.ShareableMask), lengths(exclusive)))
	}
	return p, nil
}

// devices returns the ways that are not given to one claim alone, because devices use them.
// There are none if devices may use every way of the cache, since no other way is better.
// On Arm, the kernel says that of each cache: shareable_bits in mpam_resctrl_control_init of
// drivers/resctrl/mpam_resctrl.c.
func devices(cache *numa.CacheAllocation) Mask {
	if cache.ShareableMask == cache.Mask {
		return 0
	}
	return Mask(cache.ShareableMask)
}

// check returns an error for numbers that no place could satisfy.
func (c Config) check(cache *numa.CacheAllocation) error {
	all, least := Mask(cache.Mask).Ways(), minWays(cache)
	pools := append(c.others(), append(c.exclusive(), amount{Shared, c.Shared})...)
	for _, a := range append(pools, amount{Infra, c.Infra}) {
		if a.ways < 0 || a.ways > all {
			return fmt.Errorf("%s %d: allowed are 0 to %d ways", a.pool, a.ways, all)
		}
		if a.ways < least && (a.ways > 0 || a.pool == OS) {
			return fmt.Errorf("%s %d: a mask has at least %d ways (min_cbm_bits)", a.pool, a.ways, least)
		}
	}
	if total(pools) > all {
		return fmt.Errorf("%s: the cache has %d", sum(pools), all)
	}
	if left := all - total(c.others()); c.Infra > left {
		return fmt.Errorf("%s %d: %d are left without %s", Infra, c.Infra, left, list(c.others(), ", "))
	}
	if total(pools)+c.Infra == c.OS {
		return errors.New("there is no pool but " + OS)
	}
	return nil
}

// amount is how many ways a pool wants.
type amount struct {
	pool string
	ways int
}

// others are the pools whose ways no claim gets.
func (c Config) others() []amount {
	list := []amount{{OS, c.OS}, {Reserved, c.Reserved}}
	for i, ways := range c.Groups {
		list = append(list, amount{GroupField(i), ways})
	}
	return list
}

// GroupField returns how errors name one of the Groups.
func GroupField(index int) string { return fmt.Sprintf("%s[%d]", Groups, index) }

func (c Config) exclusive() []amount {
	return []amount{{Guaranteed, c.Guaranteed}, {BestEffort, c.BestEffort}}
}

// sum returns "os 1 + guaranteed 10 = 11 ways". It leaves out pools that do not exist.
func sum(amounts []amount) string {
	return fmt.Sprintf("%s = %d ways", list(amounts, " + "), total(amounts))
}

func total(amounts []amount) (ways int) {
	for _, a := range amounts {
		ways += a.ways
	}
	return ways
}

func list(amounts []amount, separator string) string {
	var parts []string
	for _, a := range amounts {
		if a.ways != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", a.pool, a.ways))
		}
	}
	return strings.Join(parts, separator)
}

// lengths returns how long the runs of the mask are, as "4, 7".
func lengths(m Mask) string {
	var parts []string
	for _, r := range m.runs() {
		parts = append(parts, fmt.Sprint(r.Ways()))
	}
	return strings.Join(parts, ", ")
}

// site is a pool that needs one run of ways.
type site struct {
	mask *Mask
	ways int
	in   Mask // where it may be
}

// settle gives each site a run of the free ways, and reports whether there is one for
// each. It tries the lowest ways of the first site first.
func settle(sites []site, free Mask) bool {
	if len(sites) == 0 {
		return true
	}
	s := sites[0]
	if s.ways == 0 {
		return settle(sites[1:], free)
	}
	for first := free.first(); first+s.ways <= free.end(); first++ {
		if *s.mask = run(first, s.ways); s.mask.within(s.in&free) && settle(sites[1:], free&^*s.mask) {
			return true
		}
	}
	*s.mask = 0
	return false
}
