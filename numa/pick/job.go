package pick

// job is one call of Pick. Its methods take the usable CPUs, which are free and not
// chosen yet, and the choice as parameters. Both are large, and a pointer to them in
// the job would move them to the heap.
type job struct {
	picker  *Picker
	request Request
	buffers scratch
	caches  []bool // with several zones: whether the choice uses an L3, by domain.cache

	plan             // this and all fields below are for the current zone
	isolated []int32 // free isolated CPUs, by domain
	// freeBefore is the number of CPUs that were free before the choice, by domain.
	// With OneThreadPerCore, it is the number of cores.
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
	if j.request.L3 == RequireOneL3 {
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

// oneL3 returns the domain from which to take n CPUs of one L3. At least one domain
// must have that many.
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

// takeUpTo chooses n of the usable CPUs, or all of them if there are fewer, and returns
// how many it chose. The tally must be that of the usable CPUs. within is the only
// domain to consider; -1 means all.
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
