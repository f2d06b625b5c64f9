package pick

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// fragmented is what is free of a zone after a day of claims and releases have left half
// of it held.
func fragmented(tb testing.TB, m numa.Machine, zone int) cpuset.Set {
	tb.Helper()
	r := rand.New(rand.NewPCG(3, uint64(zone)))
	p, free := New(m), m.Online
	z, _ := m.Zone(zone)
	size := z.CPUs.Size()
	var held []cpuset.Set
	for step := 0; step < 1000 || free.Intersection(z.CPUs).Size() > size/2; step++ {
		if len(held) > 0 && (r.IntN(2) == 0 || free.Intersection(z.CPUs).Size() < size/3) {
			last := len(held) - 1
			i := r.IntN(len(held))
			free, held[i] = free.Union(held[i]), held[last]
			held = held[:last]
			continue
		}
		choice, err := p.Pick(free, Request{CPUs: 1 + r.IntN(12), Zones: []int{zone}})
		if err == nil {
			free, held = free.Difference(choice.CPUs), append(held, choice.CPUs)
		}
	}
	return free
}

// budget is a choice whose time and memory are watched, in the last zone of the machine.
type budget struct {
	name string
	m    numa.Machine
	free cpuset.Set
	n    int
}

func budgets(tb testing.TB) []budget {
	cpus512 := uniform{sockets: 2, zones: 1, dies: 1, l3s: 16, cores: 8, threads: 2}.machine()
	cpus1024 := uniform{sockets: 2, zones: 2, dies: 1, l3s: 16, cores: 8, threads: 2}.machine()
	return []budget{
		{"512cpus/empty8", cpus512, cpus512.Online, 8},
		{"512cpus/fragmented120", cpus512, fragmented(tb, cpus512, 1), 120},
		{"1024cpus/fragmented120", cpus1024, fragmented(tb, cpus1024, 3), 120},
	}
}

func (b budget) request() Request {
	return Request{CPUs: b.n, Zones: []int{b.m.Zones[len(b.m.Zones)-1].ID}}
}

func TestPickAllocatesFourTimesAtMost(t *testing.T) {
	for _, row := range budgets(t) {
		p, r := New(row.m), row.request()
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := p.Pick(row.free, r); err != nil {
				t.Fatal(err)
			}
		})
		if allocations > 4 {
			t.Errorf("%s: %g allocations, want at most 4", row.name, allocations)
		}
	}
}

// BenchmarkPick has a budget for each case, of at most 4 allocations: 5 µs for
// 512cpus/empty8, 50 µs for 512cpus/fragmented120, 100 µs for 1024cpus/fragmented120. The
// baseline takes the first cores that fit.
func BenchmarkPick(b *testing.B) {
	for _, row := range budgets(b) {
		p, r := New(row.m), row.request()
		b.Run(row.name, func(b *testing.B) {
			measure.Loop(b, func() error {
				_, err := p.Pick(row.free, r)
				return err
			})
		})
		b.Run(row.name+"/firstfit", func(b *testing.B) {
			measure.Loop(b, func() error {
				if got := firstFitCPUs(row.m, row.free, r.Zones[0], row.n); got.Size() != row.n {
					return fmt.Errorf("%d cpus", got.Size())
				}
				return nil
			})
		})
	}
}

// BenchmarkPickGrowth picks in a NUMA node that has been in use for a day.
func BenchmarkPickGrowth(b *testing.B) {
	for _, cpus := range measure.Sizes() {
		m := uniform{sockets: 2, zones: 1, dies: 1, l3s: cpus / 32, cores: 8, threads: 2}.machine()
		p, free := New(m), fragmented(b, m, 1)
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			measure.Loop(b, func() error {
				_, err := p.Pick(free, Request{CPUs: measure.Claim, Zones: []int{1}})
				return err
			})
		})
	}
}

// firstFitCPUs is the baseline for the time: the first free cores of the zone, then the
// first free CPUs.
func firstFitCPUs(m numa.Machine, free cpuset.Set, zone, n int) (picked cpuset.Set) {
	for i := range m.Cores {
		c := &m.Cores[i]
		if size := c.CPUs.Size(); c.Zone == zone && size <= n && c.CPUs.IsSubsetOf(free) {
			picked, n = picked.Union(c.CPUs), n-size
		}
	}
	for i := range m.Cores {
		if c := &m.Cores[i]; c.Zone == zone && n > 0 {
			for cpu := range c.CPUs.Intersection(free).Difference(picked).All() {
				if n > 0 {
					picked.Insert(cpu)
					n--
				}
			}
		}
	}
	return picked
}
