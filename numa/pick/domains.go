package pick

import (
	"cmp"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// domains is the free cores of a zone, grouped by L3; cores without an L3 are one group. Each group is sorted by
// [better].
type domains [][]core

// freeDomains groups what is free of the zone's cores.
func freeDomains(m numa.Machine, free cpuset.Set, zone int) domains {
	groups := map[int][]core{}
	for i := range m.Cores {
		if m.Cores[i].Zone != zone {
			continue
		}
		cpus := m.Cores[i].CPUs.Intersection(free)
		if cpus.IsEmpty() {
			continue
		}
		l3 := -1 // sorts before every id
		if m.Cores[i].L3 != nil {
			l3 = *m.Cores[i].L3
		}
		groups[l3] = append(groups[l3], core{free: cpus, size: cpus.Size(), whole: cpus == m.Cores[i].CPUs})
	}
	ids := make([]int, 0, len(groups))
	for id := range groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	d := make(domains, 0, len(ids))
	for _, id := range ids {
		slices.SortStableFunc(groups[id], better)
		d = append(d, groups[id])
	}
	return d
}

// cores returns the cores of all groups, sorted by [better].
func (d domains) cores() []core {
	cores := slices.Concat(d...)
	slices.SortStableFunc(cores, better)
	return cores
}

func (d domains) size() int {
	sum := 0
	for _, group := range d {
		sum += size(group)
	}
	return sum
}

// take chooses n CPUs, n ≤ d.size(), from the tightest group that has them at no higher cost than all groups
// together. Where none has, it takes all whole cores of the largest group and goes on with the rest.
func (d domains) take(n int) selection {
	best := take(d.cores(), n)
	tightest := slices.Clone(d)
	slices.SortStableFunc(tightest, func(a, b []core) int { return cmp.Compare(size(a), size(b)) })
	for _, group := range tightest {
		if size(group) < n {
			continue
		}
		if s := take(group, n); s.cost == best.cost {
			return s
		}
	}
	largest, wholeSize := 0, 0
	for i, group := range d {
		if whole := size(group[:wholeCores(group)]); whole > wholeSize {
			largest, wholeSize = i, whole
		}
	}
	if wholeSize == 0 || wholeSize > n {
		return best
	}
	split := wholeCores(d[largest])
	whole := take(d[largest][:split], wholeSize)
	rest := slices.Clone(d)
	rest[largest] = d[largest][split:]
	s := rest.take(n - wholeSize)
	s.cpus = s.cpus.Union(whole.cpus)
	return s
}
