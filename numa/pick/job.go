package pick

import "slices"

// job is one call of Pick. Its methods take the usable CPUs, which are free and not
// chosen yet, and the choice as parameters. Both are large, and a pointer to them in
// the job would move them to the heap.
type job struct {
	picker  *Picker
	request Request
	buffers scratch
	caches  []bool // with several zones, or domains of an L3: whether the choice uses an L3, by domain.cache

	plan             // this and all fields below are for the current zone
	isolated []int32 // free isolated CPUs, by domain
	// freeBefore is the number of CPUs that were free in an L3 before the choice, by the first
	// domain of the L3. With OneThreadPerCore, it is the number of cores.
	freeBefore []int32
	coresMost  int // the most free whole cores in one domain before the choice
	coresFree  int // free whole cores before the choice
}

// scratch is memory that is handed out in pieces.
type scratch struct {
	ints  []int32
	bools []bool
}

func (s *scratch) take(n int) (part []int32) {
	part, s.ints = s.ints[:n:n], s.ints[n:]
	return part
}

func (s *scratch) takeBools(n int) (part []bool) {
	part, s.bools = s.bools[:n:n], s.bools[n:]
	return part
}

// buffer returns how much memory a job needs for the zone.
func (z *zone) buffer() (ints, bools int) {
	domains, perDomain := len(z.domains), 2*z.kinds()+6
	return domains*perDomain + 3*z.dies + len(z.sizes) + 1, 3*domains + z.dies
}

// enter starts the work on a zone, and returns how many CPUs the request can get from it.
func (j *job) enter(z *zone, usable *words) (room int) {
	buffers := j.buffers
	j.tally.init(z, &j.request, &buffers)
	j.search.init(&buffers)
	j.plan.init(j.request.Placement == Spread, &buffers)
	j.isolated, j.freeBefore = buffers.take(len(z.domains)), buffers.take(len(z.domains))
	j.read(usable)
	return j.room(j.request.L3)
}

// inZone chooses n CPUs of a zone.
func (j *job) inZone(z *zone, n int, usable *words, choice *Choice) error {
	if room := j.enter(z, usable); room < n {
		return j.notEnough(n, room, z.id)
	}
	if n == 0 {
		return nil
	}
	copy(j.freeBefore, j.free)
	if z.split {
		for i := range z.domains {
			if lead := z.domains[i].lead; lead != i {
				j.freeBefore[lead] += j.freeBefore[i]
				j.freeBefore[i] = 0
			}
		}
		if j.caches == nil {
			j.caches = make([]bool, j.picker.l3s)
		}
	}
	j.coresMost, j.coresFree = j.wholeCores()
	j.choose(n, usable, choice)
	j.explain(n, usable, choice)
	return nil
}

// choose chooses n CPUs of the zone. The zone must have that many.
func (j *job) choose(n int, usable *words, choice *Choice) {
	prefer := j.request.Isolated == PreferIsolated
	if prefer {
		j.readIsolated(usable)
		copy(j.isolated, j.free)
		j.read(usable)
	} else {
		clear(j.isolated)
	}
	within := -1
	if j.request.L3 == RequireOneL3 || j.split && !prefer && (j.request.L3 == PreferOneL3 || !j.spread) {
		within = j.oneL3(n)
	}
	if prefer {
		isolated := j.readIsolated(usable)
		n -= j.takeUpTo(n, within, &isolated, choice)
		copy(j.kept, j.chosen)
		for i, taken := range choice.CPUs.Words() {
			usable[i] &^= taken // idle siblings may stay: OneThreadPerCore takes nothing from a broken core
		}
		j.read(usable)
	}
	j.takeUpTo(n, within, usable, choice)
}

// readIsolated counts only the usable CPUs that are isolated, and returns them.
func (j *job) readIsolated(usable *words) words {
	isolated := *j.picker.isolated.Words()
	for i := range isolated {
		isolated[i] &= usable[i]
	}
	j.read(&isolated)
	return isolated
}

// oneL3 returns the first domain of the L3 from which to take n CPUs, or -1 if no L3 has that
// many. Unless the request requires one L3, it is -1 as well if the cores in several would be
// better.
func (j *job) oneL3(n int) int {
	j.start()
	require := j.request.L3 == RequireOneL3
	if !require {
		j.all()
		j.aim = newAim(&j.request, j.sizes, n, &j.sum)
		j.start()
	}
	costs := aim{classes: j.sizes, n: n, single: j.threads}
	best, most, least := -1, 0, [3]int{} // least is the cost, 1 if it takes several domains, and what is free
	for _, d := range j.order {
		if lead := &j.domains[d]; !lead.hasL3 || lead.lead != int(d) {
			continue
		}
		isolated, largest := 0, 0
		for i := int(d); i < len(j.domains) && j.domains[i].lead == int(d); i++ {
			isolated, largest = isolated+int(j.isolated[i]), max(largest, int(j.free[i]))
			j.search.choose(int32(i))
		}
		if free := j.sum.free; free >= n && (require || j.met(&j.sum)) {
			cost := [3]int{costs.cost(&j.sum), 0, free}
			if largest < n {
				cost[1] = 1
			}
			isolated = min(n, isolated)
			if best < 0 || isolated > most || isolated == most && slices.Compare(cost[:], least[:]) < 0 {
				best, most, least = int(d), isolated, cost
			}
		}
		for i := int(d); i < len(j.domains) && j.domains[i].lead == int(d); i++ {
			j.drop(int32(i))
		}
	}
	return best
}

// takeUpTo chooses n of the usable CPUs, or all of them if there are fewer, and returns
// how many it chose. The tally must be that of the usable CPUs. within is the first domain of
// the only L3 to consider; -1 means all.
func (j *job) takeUpTo(n, within int, usable *words, choice *Choice) int {
	request := j.request
	if within >= 0 && j.split {
		j.keepOnly(within)
		within, request.L3 = -1, AnyL3
	}
	j.start()
	switch n = min(n, j.total); {
	case within >= 0:
		if !j.chosen[within] {
			j.search.choose(int32(within))
		}
		n = min(n, j.sum.free)
	case j.spread && request.L3 == AnyL3:
		j.all()
	default:
		j.fewest(&request, n)
	}
	if n > 0 {
		j.make(n)
		j.carryOut(usable, choice)
	}
	return n
}
