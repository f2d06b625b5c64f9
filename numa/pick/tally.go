package pick

import "github.com/dra-driver-numa/dra-driver-numa/numa"

// tally counts what is free in a zone, by domain. A broken core is one of which only a
// part is free.
type tally struct {
	*zone
	kind    numa.CoreType
	threads bool // the policy is SingleThreads
	idle    bool // one CPU of each core is taken, and the others stay idle
	// sizes are the numbers of CPUs that a whole core can give, by class: those of the
	// zone, or only 1 if idle.
	sizes []int
	// kinds is the number of kinds of cores: len(sizes) kinds of whole cores, then
	// broken cores with 1, 2, … free CPUs.
	kinds   int
	have    []int32 // number of cores, at [domain*kinds+kind]
	shared  []int32 // free CPUs on broken cores, by domain
	free    []int32 // free CPUs, by domain; free whole cores if idle
	dieFree []int32 // the same, by die
	total   int     // the same, in the zone
}

func (t *tally) init(z *zone, r *Request, s *scratch) {
	t.zone, t.kind, t.sizes, t.kinds = z, r.CoreType, z.sizes, z.kinds()
	t.threads, t.idle = r.Cores == SingleThreads, r.Cores == OneThreadPerCore
	if t.idle {
		t.sizes = z.one[:]
		t.kinds = 1
	}
	t.have = s.take(len(z.domains) * t.kinds)
	t.shared, t.free, t.dieFree = s.take(len(z.domains)), s.take(len(z.domains)), s.take(z.dies)
}

// kinds returns how many kinds of cores a zone can have.
func (z *zone) kinds() int {
	if len(z.sizes) == 0 {
		return 1
	}
	return len(z.sizes) + z.sizes[0] - 1
}

// read counts the usable CPUs.
func (t *tally) read(usable *words) {
	clear(t.have)
	clear(t.dieFree)
	t.total = 0
	for i := range t.domains {
		d := &t.domains[i]
		have, free, shared := t.have[i*t.kinds:(i+1)*t.kinds], 0, 0
		for at := d.first; at < d.last; at++ {
			kind, cpus := t.kindOf(&t.cores[at], usable)
			if cpus == 0 {
				continue
			}
			have[kind]++
			free += cpus
			if kind >= len(t.sizes) {
				shared += cpus
			}
		}
		t.free[i], t.shared[i] = int32(free), int32(shared)
		t.dieFree[d.die] += int32(free)
		t.total += free
	}
}

// kindOf returns the kind of the core and how many CPUs it gives. If cpus is 0, the
// request cannot use the core.
func (t *tally) kindOf(c *core, usable *words) (kind, cpus int) {
	if t.kind != "" && t.kind != c.kind {
		return 0, 0
	}
	cpus = t.count(c, usable)
	switch whole := cpus == c.size; {
	case t.idle && whole:
		return 0, 1
	case t.idle:
		return 0, 0
	case whole:
		return c.class, cpus
	default:
		return len(t.sizes) + cpus - 1, cpus
	}
}

// keepOnly counts nothing as free but what is in one L3, that of the domain lead.
func (t *tally) keepOnly(lead int) {
	for i := range t.domains {
		if d := &t.domains[i]; d.lead != lead {
			clear(t.have[i*t.kinds : (i+1)*t.kinds])
			t.dieFree[d.die] -= t.free[i]
			t.total -= int(t.free[i])
			t.free[i], t.shared[i] = 0, 0
		}
	}
}

// wholeCores returns how many free whole cores the domain with the most has, and how
// many all domains have.
func (t *tally) wholeCores() (most, all int) {
	for i := range t.domains {
		here := 0
		for _, n := range t.have[i*t.kinds : i*t.kinds+len(t.sizes)] {
			here += int(n)
		}
		most, all = max(most, here), all+here
	}
	return most, all
}

// room returns how many CPUs the request can get. If it requires one L3, that is the
// most that one L3 has.
func (t *tally) room(l3 L3Policy) int {
	if l3 != RequireOneL3 {
		return t.total
	}
	most, inL3 := 0, 0
	for i, free := range t.free {
		d := &t.domains[i]
		if d.lead == i {
			inL3 = 0
		}
		if inL3 += int(free); d.hasL3 {
			most = max(most, inL3)
		}
	}
	return most
}

// sum is what several domains have together.
type sum struct {
	whole  []int32 // free whole cores, by class
	shared int     // free CPUs on broken cores
	free   int     // free CPUs
}

// add adds a domain n times. With n = -1 it removes the domain.
func (s *sum) add(t *tally, domain int, n int) {
	for class := range s.whole {
		s.whole[class] += int32(n) * t.have[domain*t.kinds+class]
	}
	s.shared += n * int(t.shared[domain])
	s.free += n * int(t.free[domain])
}

// fill takes whole cores for n CPUs, the largest first, but no core that is larger than
// what is still wanted. If each size divides the next, as 1, 2, 4 and 8 threads do,
// whole cores cannot give more CPUs. rest is the number of CPUs that are still wanted.
// spare reports whether a whole core is left; it has more than rest CPUs.
func (s *sum) fill(sizes []int, n int) (cores, rest int, spare bool) {
	rest = n
	for class, size := range sizes {
		taken := min(int(s.whole[class]), rest/size)
		cores, rest = cores+taken, rest-taken*size
		spare = spare || taken < int(s.whole[class])
	}
	return cores, rest, spare
}
