package pick

import (
	"errors"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// machine is one zone, 0, of L3 domains with the given cores of two threads: CPUs 2k and 2k+1 are siblings.
func machine(coresOfL3 ...int) numa.Machine {
	var m numa.Machine
	zone := numa.Zone{}
	for l3, cores := range coresOfL3 {
		for range cores {
			first := 2 * len(m.Cores)
			cpus := cpuset.New(first, first+1)
			m.Cores = append(m.Cores, numa.Core{ID: len(m.Cores), L3: new(l3), CPUs: cpus})
			zone.CPUs = zone.CPUs.Union(cpus)
		}
	}
	m.Zones, m.Online = []numa.Zone{zone}, zone.CPUs
	return m
}

func TestChoiceIsTheBestFit(t *testing.T) {
	for name, row := range map[string]struct {
		coresOfL3 []int
		held      string // not free
		n         int
		want      string
	}{
		"nothing":                                     {[]int{2}, "", 0, ""},
		"one core":                                    {[]int{2}, "", 2, "0-1"},
		"the only L3 that fits":                       {[]int{2, 4}, "", 8, "4-11"},
		"the L3 that fits tightest":                   {[]int{4, 2, 4}, "", 4, "8-11"},
		"an L3 that a claim has opened":               {[]int{2, 2}, "4-5", 2, "6-7"},
		"the largest L3, then the tightest":           {[]int{3, 1, 2}, "", 8, "0-7"},
		"the thread whose sibling is held, if odd":    {[]int{3}, "2", 3, "0-1,3"},
		"no broken core while a whole one is free":    {[]int{3}, "0,2", 2, "4-5"},
		"a whole core in another L3 over broken ones": {[]int{2, 1}, "0,2", 2, "4-5"},
		"one half core, if odd and all are whole":     {[]int{2}, "", 3, "0-2"},
		"broken cores when nothing else is left":      {[]int{3}, "0,2,4", 2, "1,3"},
		"all":                                         {[]int{2, 1}, "3", 5, "0-2,4-5"},
	} {
		t.Run(name, func(t *testing.T) {
			m := machine(row.coresOfL3...)
			held, err := cpuset.Parse(row.held)
			if err != nil {
				t.Fatal(err)
			}
			got, err := CPUs(m, m.Online.Difference(held), 0, row.n)
			if err != nil || got.String() != row.want {
				t.Errorf("CPUs(%v without %q, %d) = %s, %v; want %s", row.coresOfL3, row.held, row.n, got, err, row.want)
			}
		})
	}
}

func TestTooManyIsErrNotEnough(t *testing.T) {
	m := machine(2)
	for _, row := range []struct {
		zone, n int
		free    cpuset.Set
	}{
		{0, 5, m.Online},
		{0, 1, cpuset.Set{}},
		{7, 1, m.Online}, // no such zone
	} {
		got, err := CPUs(m, row.free, row.zone, row.n)
		if !errors.Is(err, ErrNotEnough) || !got.IsEmpty() {
			t.Errorf("CPUs(zone %d, %d of %s) = %s, %v; want ErrNotEnough", row.zone, row.n, row.free, got, err)
		}
	}
	_, err := CPUs(m, m.Online, 0, 5)
	if want := "select 5 cpus of zone 0, which has 4 free: not enough free cpus"; err.Error() != want {
		t.Errorf("error = %q, want %q", err, want)
	}
	if _, err := CPUs(m, m.Online, 0, -1); err == nil {
		t.Error("CPUs(-1) gave no error")
	}
}

// randomMachine has up to 3 zones of up to 3 L3 domains of up to 4 cores, and some CPUs free. Core ids repeat per
// zone; sibling numbers are shuffled. maxThreads bounds the online threads of a core, which are 1, 2, 4 or 8 unless
// odd is set.
func randomMachine(r *rand.Rand, odd bool) (m numa.Machine, free cpuset.Set) {
	cpus := r.Perm(3 * 3 * 4 * 8)
	threads := func() int { return 1 << r.IntN(3) }
	if odd {
		threads = func() int { return 1 + r.IntN(6) }
	} else if r.IntN(2) == 0 {
		uniform := threads()
		threads = func() int { return uniform }
	}
	for id := range 1 + r.IntN(3) {
		zone := numa.Zone{ID: 3 * id}
		for l3 := range r.IntN(4) {
			for core := range 1 + r.IntN(4) {
				n := threads()
				c := numa.Core{ID: core, Zone: zone.ID, CPUs: cpuset.New(cpus[:n]...)}
				if l3 > 0 {
					c.L3 = new(10*id + l3)
				}
				cpus = cpus[n:]
				m.Cores = append(m.Cores, c)
				zone.CPUs = zone.CPUs.Union(c.CPUs)
			}
		}
		m.Zones = append(m.Zones, zone)
		m.Online = m.Online.Union(zone.CPUs)
	}
	freePercent := 10 + r.IntN(91)
	for cpu := range m.Online.All() {
		if r.IntN(100) < freePercent {
			free = free.Union(cpuset.New(cpu))
		}
	}
	return m, free
}

// oracle tries every set of whole free cores: the most CPUs, at most n, that whole cores can give.
func oracle(m numa.Machine, free cpuset.Set, zone, n int) (wholeCPUs int) {
	var sizes []int
	for _, core := range m.Cores {
		if core.Zone == zone && core.CPUs.IsSubsetOf(free) {
			sizes = append(sizes, core.CPUs.Size())
		}
	}
	for subset := range 1 << len(sizes) {
		sum := 0
		for rest := subset; rest != 0; rest &= rest - 1 {
			sum += sizes[bits.TrailingZeros(uint(rest))]
		}
		if sum <= n {
			wholeCPUs = max(wholeCPUs, sum)
		}
	}
	return wholeCPUs
}

// costOf counts again, from the result alone.
func costOf(m numa.Machine, free, picked cpuset.Set) (wholeCPUs, broken, opened int) {
	l3s := map[int]bool{}
	for _, core := range m.Cores {
		switch {
		case core.CPUs.IsSubsetOf(picked):
			wholeCPUs += core.CPUs.Size()
		case core.CPUs.Overlaps(picked) && core.CPUs.IsSubsetOf(free):
			broken++
		}
		if core.CPUs.Overlaps(picked) {
			l3 := -1
			if core.L3 != nil {
				l3 = *core.L3
			}
			l3s[l3] = true
		}
	}
	return wholeCPUs, broken, len(l3s)
}

func FuzzChoiceKeepsItsPromises(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed, int(seed%17), seed%4 == 3)
	}
	f.Fuzz(func(t *testing.T, seed uint64, n int, odd bool) {
		m, free := randomMachine(rand.New(rand.NewPCG(seed, 1)), odd)
		zone := m.Zones[seed%uint64(len(m.Zones))]
		inZone := free.Intersection(zone.CPUs)
		got, err := CPUs(m, free, zone.ID, n)
		if n < 0 || n > inZone.Size() {
			if err == nil || !got.IsEmpty() {
				t.Fatalf("CPUs(%d of %s) = %s, %v; want an error", n, inZone, got, err)
			}
			return
		}
		if err != nil || got.Size() != n || !got.IsSubsetOf(inZone) {
			t.Fatalf("CPUs(%d of %s) = %s, %v", n, inZone, got, err)
		}
		if again, _ := CPUs(m, free, zone.ID, n); again != got {
			t.Errorf("CPUs(%d of %s) = %s, then %s", n, inZone, got, again)
		}
		whole, broken, _ := costOf(m, free, got)
		if broken > 1 {
			t.Errorf("CPUs(%d of %s) = %s broke %d cores", n, inZone, got, broken)
		}
		if odd {
			return // several core sizes that do not divide each other: no promise of the most
		}
		want := oracle(m, free, zone.ID, n)
		if whole != want {
			t.Errorf("CPUs(%d of %s) = %s has %d cpus in whole cores, want %d", n, inZone, got, whole, want)
		}
		if freeInBroken := brokenFree(m, inZone); broken == 1 && freeInBroken >= n-want {
			t.Errorf("CPUs(%d of %s) = %s broke a core beside %d free cpus on broken ones", n, inZone, got, freeInBroken)
		}
	})
}

// brokenFree counts the free CPUs on cores that are free in part only.
func brokenFree(m numa.Machine, free cpuset.Set) (cpus int) {
	for _, core := range m.Cores {
		if !core.CPUs.IsSubsetOf(free) {
			cpus += core.CPUs.Intersection(free).Size()
		}
	}
	return cpus
}

func TestWholeCoresAreInTheFewestL3s(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var coresOfL3 []int
		for range 1 + r.IntN(5) {
			coresOfL3 = append(coresOfL3, 1+r.IntN(4))
		}
		m := machine(coresOfL3...)
		n := 2 * (1 + r.IntN(len(m.Cores)))
		got, err := CPUs(m, m.Online, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		fewest := len(coresOfL3)
		for subset := range 1 << len(coresOfL3) {
			cpus := 0
			for rest := subset; rest != 0; rest &= rest - 1 {
				cpus += 2 * coresOfL3[bits.TrailingZeros(uint(rest))]
			}
			if cpus >= n {
				fewest = min(fewest, bits.OnesCount(uint(subset)))
			}
		}
		if _, _, opened := costOf(m, m.Online, got); opened != fewest {
			t.Errorf("CPUs(%v cores, %d) = %s is in %d L3s, want %d", coresOfL3, n, got, opened, fewest)
		}
	}
}

func TestGrantsAreDisjointAndFillTheZone(t *testing.T) {
	m := machine(4, 4, 8)
	free, grants := m.Online, 0
	for {
		got, err := CPUs(m, free, 0, 4)
		if err != nil {
			break
		}
		if whole, _, opened := costOf(m, m.Online, got); whole != 4 || opened != 1 {
			t.Errorf("grant %s is %d cpus of whole cores in %d L3s, want 4 in 1", got, whole, opened)
		}
		free, grants = free.Difference(got), grants+1
	}
	if grants != 8 || !free.IsEmpty() {
		t.Errorf("%d grants of 4, %s left; want 8 and none", grants, free)
	}
}

func BenchmarkEightCPUsOfAZoneOf32(b *testing.B) { benchmark(b, 8, 4, 4, 8) }
func Benchmark120CPUsOfAZoneOf256(b *testing.B)  { benchmark(b, 120, 16, 16, 16, 16, 16, 16, 16, 16) }

func benchmark(b *testing.B, n int, coresOfL3 ...int) {
	m := machine(coresOfL3...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := CPUs(m, m.Online, 0, n); err != nil {
			b.Fatal(err)
		}
	}
}
