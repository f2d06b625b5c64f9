package pick

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// model is a machine as a slow reader of the documentation sees it: cores in the order of
// the machine, and what of each is free, counted CPU by CPU. It shares no code with what
// it checks.
type model struct {
	m        numa.Machine
	isolated cpuset.Set
	cores    map[int][]modelCore // by zone
	groups   map[int]int         // by zone: how many groups
	dies     map[int]int         // by zone
	uniform  map[int]bool        // by zone: all cores are of one size
	dividing map[int]bool        // by zone: each size divides the next
	sharedL3 map[int]bool        // by zone: several dies have an L3 together
	zoneOf   [cpuset.MaxCPUs]int // -1 for none
}

type modelCore struct {
	cpus  []int
	kind  numa.CoreType
	group int // the cores of one L3, or those of a die without one
	die   int
	l3    int // -1 for none
}

func newModel(m numa.Machine) *model {
	w := &model{
		m: m, cores: map[int][]modelCore{}, groups: map[int]int{}, dies: map[int]int{},
		uniform: map[int]bool{}, sharedL3: map[int]bool{}, dividing: map[int]bool{},
	}
	if m.Isolated != nil {
		w.isolated = *m.Isolated
	}
	for cpu := range w.zoneOf {
		w.zoneOf[cpu] = -1
	}
	for _, zone := range m.Zones {
		groups, dies, sizes := map[string]int{}, map[string]int{}, map[int]bool{}
		number := func(of map[string]int, key string) int {
			if _, ok := of[key]; !ok {
				of[key] = len(of)
			}
			return of[key]
		}
		for _, c := range m.Cores {
			if c.Zone != zone.ID {
				continue
			}
			die := shown(c.Socket) + "/" + shown(c.Die)
			core := modelCore{kind: c.Type, l3: -1, die: number(dies, die)}
			if c.L3 != nil {
				core.l3, core.group = *c.L3, number(groups, shown(c.L3))
			} else {
				core.group = number(groups, "die "+die)
			}
			for cpu := range c.CPUs.All() {
				core.cpus = append(core.cpus, cpu)
				w.zoneOf[cpu] = zone.ID
			}
			w.cores[zone.ID] = append(w.cores[zone.ID], core)
			sizes[len(core.cpus)] = true
		}
		w.sharedL3[zone.ID] = slices.ContainsFunc(w.cores[zone.ID], func(a modelCore) bool {
			return a.l3 >= 0 && slices.ContainsFunc(w.cores[zone.ID], func(b modelCore) bool { return a.l3 == b.l3 && a.die != b.die })
		})
		w.groups[zone.ID], w.dies[zone.ID] = len(groups), len(dies)
		w.uniform[zone.ID], w.dividing[zone.ID] = len(sizes) <= 1, true
		for a := range sizes {
			for b := range sizes {
				w.dividing[zone.ID] = w.dividing[zone.ID] && (a%b == 0 || b%a == 0)
			}
		}
	}
	return w
}

func shown(number *int) string {
	if number == nil {
		return "?"
	}
	return fmt.Sprint(*number)
}

// tallied is what a request may have of one core.
func (w *model) tallied(c *modelCore, free *cpuset.Set, r *Request) (n int, whole bool) {
	if r.CoreType != "" && r.CoreType != c.kind {
		return 0, false
	}
	for _, cpu := range c.cpus {
		if free.Contains(cpu) && (r.Isolated != AvoidIsolated || !w.isolated.Contains(cpu)) {
			n++
		}
	}
	whole = n == len(c.cpus)
	if r.Cores == OneThreadPerCore {
		if !whole {
			return 0, false
		}
		return 1, true
	}
	return n, whole
}

// room is how many CPUs the request can have of a zone, by its hard options.
func (w *model) room(zone int, free *cpuset.Set, r *Request) int {
	all, of := 0, make([]int, w.groups[zone])
	most := 0
	cores := w.cores[zone]
	for i := range cores {
		n, _ := w.tallied(&cores[i], free, r)
		all += n
		if of[cores[i].group] += n; cores[i].l3 >= 0 {
			most = max(most, of[cores[i].group])
		}
	}
	if r.L3 == RequireOneL3 {
		return most
	}
	return all
}

// counts is what a choice in one zone is made of, counted from its CPUs.
type counts struct {
	cpus, idle, isolated      int
	whole, wholeCPUs          int   // cores that are all in the choice, or idle, and their CPUs in it
	shared, broken, brokenCPU int   // CPUs on cores that were not all free; cores that were, and their CPUs
	opened                    int   // cores that were all free before and of which it has a part or all
	outside                   int   // CPUs without an L3
	groups, dies, l3s         int   // that it is in
	in                        int   // those groups, as bits
	ofGroup, ofDie            []int // cores taken, by group and by die; only whole ones
	l3                        int   // one of those that it is in
}

// cost is what comes before all else with [AnyL3].
func (c counts) cost(r *Request) [2]int {
	switch {
	case r.Cores == SingleThreads && r.L3 == AnyL3:
		return [2]int{c.opened, -c.shared}
	case r.Cores == SingleThreads:
		return [2]int{c.opened, 0}
	}
	return [2]int{c.cpus - c.wholeCPUs, c.broken}
}

func (w *model) count(zone int, free *cpuset.Set, r *Request, choice *Choice) counts {
	got := counts{ofGroup: make([]int, w.groups[zone]), ofDie: make([]int, w.dies[zone])}
	inGroup, inDie := make([]bool, w.groups[zone]), make([]bool, w.dies[zone])
	cores := w.cores[zone]
	for i := range cores {
		c := &cores[i]
		mine, idle := 0, 0
		for _, cpu := range c.cpus {
			if choice.CPUs.Contains(cpu) {
				mine++
				if w.isolated.Contains(cpu) {
					got.isolated++
				}
			} else if choice.Idle.Contains(cpu) {
				idle++
			}
		}
		got.cpus, got.idle = got.cpus+mine, got.idle+idle
		if mine == 0 {
			continue
		}
		_, wasWhole := w.tallied(c, free, r)
		if wasWhole {
			got.opened++
		}
		switch {
		case mine+idle == len(c.cpus):
			got.whole++
			got.wholeCPUs += mine
			got.ofGroup[c.group]++
			got.ofDie[c.die]++
		case wasWhole:
			got.broken++
			got.brokenCPU += mine
		default:
			got.shared += mine
		}
		if c.l3 < 0 {
			got.outside += mine
		}
		if !inDie[c.die] {
			inDie[c.die] = true
			got.dies++
		}
		if !inGroup[c.group] {
			inGroup[c.group] = true
			got.groups++
			got.in |= 1 << c.group
			if c.l3 >= 0 {
				got.l3s, got.l3 = got.l3s+1, c.l3
			}
		}
	}
	return got
}

// firstFit is what the first cores that fit make: of the free ones in the order of the
// machine, after them what is free of broken ones, then a part of a free one. Single
// threads take the broken ones first.
func (w *model) firstFit(zone int, free *cpuset.Set, r *Request, n int) (choice Choice) {
	cores := w.cores[zone]
	take := func(wanted func(whole bool, size int) bool) {
		for i := range cores {
			size, whole := w.tallied(&cores[i], free, r)
			if n == 0 || size == 0 || !wanted(whole, size) || choice.CPUs.Contains(cores[i].cpus[0]) {
				continue
			}
			for _, cpu := range cores[i].cpus {
				switch {
				case !free.Contains(cpu) || r.Isolated == AvoidIsolated && w.isolated.Contains(cpu):
				case n > 0 && (r.Cores != OneThreadPerCore || cpu == cores[i].cpus[0]):
					choice.CPUs.Insert(cpu)
					n--
				case r.Cores == OneThreadPerCore:
					choice.Idle.Insert(cpu)
				}
			}
			if r.Cores == OneThreadPerCore {
				for _, cpu := range cores[i].cpus[1:] {
					choice.Idle.Insert(cpu)
				}
			}
		}
	}
	if r.Cores != SingleThreads {
		take(func(whole bool, size int) bool { return whole && size <= n })
	}
	take(func(whole bool, size int) bool { return !whole })
	take(func(whole bool, size int) bool { return whole && size <= n })
	take(func(whole bool, size int) bool { return whole })
	return choice
}

// shares is how many CPUs each zone of a request has to give; nil if they have too few.
func (w *model) shares(free *cpuset.Set, r *Request) map[int]int {
	shares, unit := map[int]int{}, w.unit(r)
	// A core after the other, where least is, then where most is free. What fits nowhere as a
	// core is divided.
	for left := r.CPUs; left > 0; {
		best, most := w.next(free, r, shares, min(unit, left))
		if best < 0 {
			best, most = w.next(free, r, shares, 1)
		}
		if best < 0 {
			return nil
		}
		more := min(unit, left, most-shares[best])
		shares[best] += more
		left -= more
	}
	return shares
}

// unit is how many CPUs zones give at a time.
func (w *model) unit(r *Request) int {
	unit := 1
	if r.Cores == WholeCores {
		for _, zone := range r.Zones {
			for _, c := range w.cores[zone] {
				if r.CoreType == "" || r.CoreType == c.kind {
					unit = max(unit, len(c.cpus))
				}
			}
		}
	}
	return unit
}

// next is the zone that gives the next CPUs, and how many the request can get from it; -1 for
// none.
func (w *model) next(free *cpuset.Set, r *Request, shares map[int]int, cpus int) (best, most int) {
	best = -1
	for _, zone := range r.Zones {
		room := w.room(zone, free, r)
		if room-shares[zone] < cpus {
			continue
		}
		if best < 0 || shares[zone] < shares[best] || shares[zone] == shares[best] && (room > most || room == most && zone < best) {
			best, most = zone, room
		}
	}
	return best, most
}
