package caches

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// part is the classes of one pool.
type part struct {
	pool  string
	ways  int
	asked int // by the operator; 0 for a part of what is left
	given int
}

// classesOf divides the classes of the kernel (CLOSIDs) over the pools guaranteed and
// besteffort. The default group has one class, and so have reserved, each of groups, infra
// and shared. A class has a mask for each cache, so each cache has the whole number for its
// claims.
// Groups of other tools, foreign in number, take classes from the pool that has the most.
func classesOf(r *numa.Resctrl, pools deviceclasses.CachePools, foreign int) (map[string]int, error) {
	all := mostGroups(r)
	free, withheld := all-1, "the default group"
	if pools.Reserved != nil {
		free, withheld = free-1, withheld+", "+ways.Reserved
	}
	for i := range pools.Groups {
		free, withheld = free-1, withheld+", "+ways.GroupField(i)
	}
	if pools.Infra != nil {
		free, withheld = free-1, withheld+", "+ways.Infra
	}
	if pools.Shared != nil {
		free, withheld = free-1, withheld+", "+ways.Shared
	}
	var parts []part
	if p := pools.Guaranteed; p != nil {
		parts = append(parts, part{pool: ways.Guaranteed, ways: p.Ways, asked: p.Classes})
	}
	if p := pools.BestEffort; p != nil {
		parts = append(parts, part{pool: ways.BestEffort, ways: p.Ways, asked: p.Classes})
	}
	if free < 0 {
		return nil, fmt.Errorf("%s need %d classes: the kernel has %d", withheld, all-free, all)
	}
	wanted, ok := divide(free, parts)
	if !ok {
		return nil, fmt.Errorf("the pools of caches need %d classes: %d of %d are left without %s", wanted, free, all, withheld)
	}
	withdraw(free-foreign, parts)
	classes := map[string]int{}
	for _, p := range parts {
		classes[p.pool] = p.given
	}
	return classes, nil
}

// mostGroups returns how many groups the kernel can have, the default group included.
// The resource with the fewest classes counts, also if it is another one than the cache:
// closid_init in fs/resctrl/rdtgroup.c. Where the kernel counts what groups use, each
// group also needs an RMID: mkdir_rdt_prepare_rmid_alloc in the same file.
func mostGroups(r *numa.Resctrl) int {
	most := r.Caches[0].CLOSIDs
	for i := range r.Caches {
		most = min(most, r.Caches[i].CLOSIDs)
	}
	for _, bandwidth := range r.Bandwidths {
		most = min(most, bandwidth.CLOSIDs)
	}
	for _, monitor := range r.Monitors {
		most = min(most, monitor.RMIDs)
	}
	return most
}

// divide gives each part what the operator asks for, and divides the rest over the others
// in proportion to their ways. It returns how many classes the parts need at least, and
// whether there are as many.
func divide(free int, parts []part) (wanted int, ok bool) {
	waiting, waysWaiting := 0, 0 // parts for which the operator asks for nothing
	for i := range parts {
		p := &parts[i]
		wanted += max(1, p.asked)
		if p.given = p.asked; p.asked == 0 {
			waiting, waysWaiting = waiting+1, waysWaiting+p.ways
		}
	}
	if wanted > free {
		return wanted, false
	}
	rest := free - (wanted - waiting)
	for i := range parts {
		p := &parts[i]
		if p.asked != 0 {
			continue
		}
		waiting--
		p.given = min(max((2*rest*p.ways+waysWaiting)/(2*waysWaiting), 1), rest-waiting)
		rest, waysWaiting = rest-p.given, waysWaiting-p.ways
	}
	return wanted, true
}

// withdraw takes classes from the largest part, the last of several, until the parts have
// no more than there are.
func withdraw(free int, parts []part) {
	for {
		sum, largest := 0, 0
		for i := range parts {
			sum += parts[i].given
			if parts[i].given >= parts[largest].given {
				largest = i
			}
		}
		if sum <= max(free, 0) {
			return
		}
		parts[largest].given--
	}
}
