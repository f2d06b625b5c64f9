// Package pick chooses which CPUs of a zone a claim gets. The choice is a function of values: the same machine, free
// CPUs and number always give the same set. It keeps no record of what was given and looks at no other zone.
package pick

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ErrNotEnough says that the zone has fewer free CPUs than wanted.
var ErrNotEnough = errors.New("not enough free cpus")

// CPUs returns exactly n of the zone's free CPUs, or [ErrNotEnough]. These come first, in this order:
//   - as many of the n as possible are whole cores, whose siblings nobody else can have;
//   - what is left over comes from cores that others hold parts of, and breaks at most one free core;
//   - the CPUs are in as few L3 domains as that allows, in the one that they fill best.
func CPUs(m numa.Machine, free cpuset.Set, zone, n int) (cpuset.Set, error) {
	if n < 0 {
		return cpuset.Set{}, fmt.Errorf("select %d cpus of zone %d: the number is negative", n, zone)
	}
	domains := freeDomains(m, free, zone)
	if size := domains.size(); size < n {
		return cpuset.Set{}, fmt.Errorf("select %d cpus of zone %d, which has %d free: %w", n, zone, size, ErrNotEnough)
	}
	best := take(domains.cores(), n)
	// Cores of several sizes in one zone (hybrids, offline siblings) can make the L3 choice waste cores: no L3 then.
	if near := domains.take(n); near.cost == best.cost {
		best = near
	}
	return best.cpus, nil
}

// core is the free part of a physical core.
type core struct {
	free  cpuset.Set
	size  int  // of free, > 0
	whole bool // free is all of the core's online CPUs
}

// selection is what was chosen, and what it costs.
type selection struct {
	cpus cpuset.Set
	cost cost
}

// cost counts what a selection has to avoid; equal costs are equally good.
type cost struct {
	shared int // CPUs on cores that are not taken whole
	broken int // whole cores of which only a part is taken, ≤ 1
}

// take chooses n CPUs of the cores, which are sorted by [better] and have that many: the first cores that fit, then a
// part of the last one that did not. Every core passed over is larger than what is still wanted, so one part is
// enough; the last such core is the smallest broken one, else the smallest whole one.
//
// Taking the largest first leaves the least over if each size divides the next: 1, 2, 4 and 8 threads do.
func take(cores []core, n int) selection {
	var s selection
	var last *core
	for i := range cores {
		c := &cores[i]
		if c.size > n {
			last = c
			continue
		}
		s.cpus, n = s.cpus.Union(c.free), n-c.size
		if !c.whole {
			s.cost.shared += c.size
		}
	}
	if n == 0 {
		return s
	}
	s.cost.shared += n
	if last.whole {
		s.cost.broken++
	}
	for cpu := range last.free.All() {
		if n == 0 {
			break
		}
		s.cpus, n = s.cpus.Union(cpuset.New(cpu)), n-1
	}
	return s
}

// better sorts whole cores before broken ones and larger before smaller ones.
func better(a, b core) int {
	if a.whole != b.whole {
		if a.whole {
			return -1
		}
		return 1
	}
	return b.size - a.size
}

func size(cores []core) int {
	sum := 0
	for i := range cores {
		sum += cores[i].size
	}
	return sum
}

// wholeCores returns how many of the sorted cores are whole; they come first.
func wholeCores(cores []core) int {
	broken := slices.IndexFunc(cores, func(c core) bool { return !c.whole })
	if broken < 0 {
		return len(cores)
	}
	return broken
}
