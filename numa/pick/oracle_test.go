package pick

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// smallMachine is one zone of at most maxCPUs in up to 3 dies of up to 3 L3s, cores of 1,
// 2 or 4 threads or of 1 and 2, and some of its CPUs are free.
func smallMachine(r *rand.Rand, maxCPUs int) (m numa.Machine, free cpuset.Set) {
	sizes := [][]int{{1}, {2}, {2}, {4}, {1, 2}}[r.IntN(5)]
	cpus := r.Perm(maxCPUs)
	var zone numa.Zone
	for l3 := 0; len(cpus) > 0; l3++ {
		die := r.IntN(3)
		for range 1 + r.IntN(3) {
			size := sizes[r.IntN(len(sizes))]
			if size > len(cpus) {
				cpus = nil
				break
			}
			c := numa.Core{Die: new(die), L3: new(l3), CPUs: cpuset.New(cpus[:size]...), Type: numa.StandardCores}
			if cpus = cpus[size:]; r.IntN(16) == 0 {
				c.L3 = nil
			}
			m.Cores, zone.CPUs = append(m.Cores, c), zone.CPUs.Union(c.CPUs)
		}
	}
	slices.SortStableFunc(m.Cores, func(a, b numa.Core) int { return cmp.Compare(*a.Die, *b.Die) })
	m.Zones, m.Online = []numa.Zone{zone}, zone.CPUs
	freePercent := 30 + r.IntN(71)
	for cpu := range m.Online.All() {
		if r.IntN(100) < freePercent {
			free.Insert(cpu)
		}
	}
	return m, free
}

// order is what a choice is judged by, the first first.
func order(r *Request, c counts) []int {
	cost := c.cost(r)
	if r.L3 == PreferOneL3 {
		return []int{c.groups, cost[0], cost[1], c.dies}
	}
	return []int{cost[0], cost[1], c.groups, c.dies}
}

// possible are the counts of every set of n CPUs that the request allows.
func (w *model) possible(free *cpuset.Set, r *Request) (all []counts) {
	var ids []int
	for i := range w.cores[0] {
		c := &w.cores[0][i]
		n, _ := w.tallied(c, free, r)
		for _, cpu := range c.cpus {
			if n > 0 && free.Contains(cpu) && (r.Cores != OneThreadPerCore || cpu == c.cpus[0]) {
				ids = append(ids, cpu)
			}
		}
	}
	breaks := r.L3 != PreferOneL3 || r.Cores != WholeCores // a part of a fresh core may be taken
	for {
		for subset := range 1 << len(ids) {
			if bits.OnesCount(uint(subset)) != r.CPUs {
				continue
			}
			var choice Choice
			for rest := subset; rest != 0; rest &= rest - 1 {
				choice.CPUs.Insert(ids[bits.TrailingZeros(uint(rest))])
			}
			if r.Cores == OneThreadPerCore {
				for i := range w.cores[0] {
					if cpus := w.cores[0][i].cpus; choice.CPUs.Contains(cpus[0]) {
						choice.Idle = choice.Idle.Union(cpuset.New(cpus[1:]...))
					}
				}
			}
			if c := w.count(0, free, r, &choice); (c.broken == 0 || breaks) && (r.L3 != RequireOneL3 || c.l3s == 1 && c.outside == 0) {
				all = append(all, c)
			}
		}
		if len(all) > 0 || breaks {
			return all
		}
		breaks = true
	}
}

// freeOf is what the request may have of each group.
func (w *model) freeOf(free *cpuset.Set, r *Request) []int {
	freeOf := make([]int, w.groups[0])
	for i := range w.cores[0] {
		n, _ := w.tallied(&w.cores[0][i], free, r)
		freeOf[w.cores[0][i].group] += n
	}
	return freeOf
}

// tighter reports whether the groups a are those of b with one exchanged for another that
// has fewer free.
func tighter(freeOf []int, a, b int) bool {
	in, out := uint(a&^b), uint(b&^a)
	return bits.OnesCount(in) == 1 && bits.OnesCount(out) == 1 && freeOf[bits.TrailingZeros(in)] < freeOf[bits.TrailingZeros(out)]
}

func TestChoiceIsTheBestOfAllPossible(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	tried := 0
	for range 4000 {
		m, free := smallMachine(r, 11)
		w, p := newModel(m), New(m)
		request := Request{
			CPUs: 1 + r.IntN(free.Size()+1), Zones: []int{0}, Cores: CorePolicy(r.IntN(3)), L3: L3Policy(r.IntN(3)),
		}
		choice, err := p.Pick(free, request)
		all := w.possible(&free, &request)
		if err != nil || len(all) == 0 {
			if err == nil || len(all) > 0 {
				t.Errorf("Pick(%+v of %s) = %s, %v; %d sets are possible", request, free, choice.CPUs, err, len(all))
			}
			continue
		}
		tried++
		got := w.count(0, &free, &request, &choice)
		freeOf := w.freeOf(&free, &request)
		for _, other := range all {
			if c := slices.Compare(order(&request, other), order(&request, got)); c < 0 {
				t.Fatalf("%v: Pick(%+v of %s) = %s is %v %+v, but %v is possible: %+v",
					w.cores, request, free, choice.CPUs, order(&request, got), got, order(&request, other), other)
			} else if c > 0 {
				continue
			}
			if tighter(freeOf, other.in, got.in) {
				t.Fatalf("%v: Pick(%+v of %s) = %s is in groups %b of %v, but %b are tighter", w.cores, request, free, choice.CPUs, got.in, freeOf, other.in)
			}
		}
	}
	if tried < 2000 {
		t.Errorf("only %d requests could be fulfilled", tried)
	}
}

// TestChoiceIsInTheFewestL3sAndDies looks at all sets of L3s of larger machines.
func TestChoiceIsInTheFewestL3sAndDies(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		u := uniform{sockets: 1, zones: 1, dies: 1 + r.IntN(3), l3s: 1 + r.IntN(3), cores: 1 + r.IntN(6), threads: 1 + r.IntN(2)}
		m := u.machine()
		w, free := newModel(m), m.Online
		for heldPercent := r.IntN(90); !free.IsEmpty() && free.Size()*100 > m.Online.Size()*(100-heldPercent); {
			free.Remove(r.IntN(m.Online.Size()))
		}
		request := Request{CPUs: r.IntN(free.Size() + 1), Zones: []int{0}, Cores: CorePolicy(r.IntN(2))}
		choice, err := New(m).Pick(free, request)
		if err != nil {
			t.Fatal(err)
		}
		got, freeOf := w.count(0, &free, &request, &choice), w.freeOf(&free, &request)
		for subset := range 1 << w.groups[0] {
			within := free
			for i := range w.cores[0] {
				if c := &w.cores[0][i]; subset>>c.group&1 == 0 {
					within = within.Difference(cpuset.New(c.cpus...))
				}
			}
			if within.Size() < request.CPUs {
				continue
			}
			// In cores of one size the first that fit have the least cost.
			first := w.firstFit(0, &within, &request, request.CPUs)
			other := w.count(0, &free, &request, &first)
			c := slices.Compare(order(&request, other), order(&request, got))
			if c < 0 || c == 0 && tighter(freeOf, other.in, got.in) {
				t.Fatalf("%+v: Pick(%+v of %s) = %s is %v, but %s is %v or tighter", u, request, free, choice.CPUs,
					order(&request, got), first.CPUs, order(&request, other))
			}
		}
	}
}

func FuzzPick(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, int(seed%23))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n int) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, free := smallMachine(r, 64)
		p, request := New(m), randomRequest(r, m)
		request.CPUs = n
		choice, err := p.Pick(free, request)
		if again, _ := p.Pick(free, request); again != choice {
			t.Errorf("Pick(%+v of %s) = %s, then %s", request, free, choice.CPUs, again.CPUs)
		}
		if n < 0 {
			if err == nil {
				t.Errorf("Pick(%+v) = %s, want an error", request, choice.CPUs)
			}
			return
		}
		w := newModel(m)
		wrong := w.check(&free, &request, &choice, err)
		if wrong == "" {
			wrong = w.checkReason(&free, &request, &choice)
		}
		if wrong != "" {
			t.Errorf("Pick(%+v of %s) = %s, idle %s, %q, %v: %s", request, free, choice.CPUs, choice.Idle, choice.Why, err, wrong)
		}
	})
}
