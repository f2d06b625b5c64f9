package pick

import "fmt"

// job is one call of Pick while it is worked on. Its methods get what is usable, free and not chosen yet, and the
// choice as parameters because both are large: what a job points to is on the heap.
type job struct {
	picker  *Picker
	request Request
	buffers scratch
	caches  []bool // with several zones: the L3s that the choice is in, by domain.cache

	plan               // of the zone that is worked on, as is all below
	isolated   []int32 // isolated CPUs that are free, by domain
	freeBefore []int32 // CPUs that were free before anything was chosen, by domain; free cores with OneThreadPerCore
	coresMost  int     // the most whole cores that were free in one domain
	coresFree  int     // whole cores that were free
}

// scratch is memory that is handed out bit by bit.
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

// buffer returns how much memory a job takes for the zone.
func (z *zone) buffer() (ints, bools int) {
	domains, perDomain := len(z.domains), 2*z.kinds()+6
	return domains*perDomain + 3*z.dies + len(z.sizes) + 1, 3*domains + z.dies
}

// enter begins the work on a zone and returns how many CPUs the request can get of it.
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
		return j.notEnough(z, n, room)
	}
	if n == 0 {
		return nil
	}
	copy(j.freeBefore, j.free)
	j.coresMost, j.coresFree = j.wholeCores()
	j.choose(n, usable, choice)
	j.explain(n, usable, choice)
	return nil
}

// choose chooses n CPUs of the zone, which has them.
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
	if j.request.L3 == RequireOneL3 {
		within = j.oneL3(n)
	}
	if prefer {
		isolated := j.readIsolated(usable)
		n -= j.takeUpTo(n, within, &isolated, choice)
		copy(j.kept, j.chosen)
		for i, taken := range choice.CPUs.Words() {
			usable[i] &^= taken // from a core that is kept idle no other thread is taken
		}
		j.read(usable)
	}
	j.takeUpTo(n, within, usable, choice)
}

// readIsolated counts the isolated CPUs only.
func (j *job) readIsolated(usable *words) words {
	isolated := *j.picker.isolated.Words()
	for i := range isolated {
		isolated[i] &= usable[i]
	}
	j.read(&isolated)
	return isolated
}

// oneL3 returns the domain for n CPUs of one L3, which at least one has.
func (j *job) oneL3(n int) int {
	j.start()
	costs := aim{classes: j.sizes, n: n, single: j.threads}
	best, mostIsolated, least := -1, 0, 0
	for _, d := range j.order {
		if !j.domains[d].hasL3 || int(j.free[d]) < n {
			continue
		}
		j.sum.add(&j.tally, int(d), 1)
		isolated, cost := min(n, int(j.isolated[d])), costs.cost(&j.sum)
		j.sum.add(&j.tally, int(d), -1)
		if best < 0 || isolated > mostIsolated || isolated == mostIsolated && cost < least {
			best, mostIsolated, least = int(d), isolated, cost
		}
	}
	return best
}

// takeUpTo chooses n of the usable CPUs, which are counted, or all if there are less, and returns how many it chose.
// within is the only domain to look at, -1 for all.
func (j *job) takeUpTo(n, within int, usable *words, choice *Choice) int {
	j.start()
	switch n = min(n, j.total); {
	case within >= 0:
		if !j.chosen[within] {
			j.search.choose(int32(within))
		}
		n = min(n, j.sum.free)
	case j.spread && j.request.L3 == AnyL3:
		j.all()
	default:
		j.fewest(&j.request, n)
	}
	if n > 0 {
		j.make(n)
		j.carryOut(usable, choice)
	}
	return n
}

// notEnough says what the zone has and what the request insists on.
func (j *job) notEnough(z *zone, n, room int) error {
	r := &j.request
	what := fmt.Sprintf("%d free", room)
	if r.Cores == OneThreadPerCore {
		what = counted(room, "whole core") + " free"
	}
	if r.L3 == RequireOneL3 {
		what += " in one L3"
	}
	if r.CoreType != "" {
		what += fmt.Sprintf(" on %s cores", r.CoreType)
	}
	if r.Isolated == AvoidIsolated {
		what += " that are not isolated"
	}
	return fmt.Errorf("select %d cpus of zone %d, which has %s: %w", n, z.id, what, ErrNotEnough)
}
