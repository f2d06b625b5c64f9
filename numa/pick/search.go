package pick

import (
	"cmp"
	"slices"
)

// search chooses the domains from which CPUs are taken: the fewest that meet the aim.
// Among equal choices it takes one in the fewest dies, then the one that fits tightest.
type search struct {
	tally
	aim
	// order lists the domains, the tightest first: those with the fewest free CPUs,
	// then those in the die with the fewest, then by index.
	order  []int32
	chosen []bool  // by domain
	kept   []bool  // by domain: already in use by this choice, so it costs nothing
	barred []bool  // by die: its domains must not be chosen
	best   []bool  // the best choice so far, while other choices are tried
	inDie  []int32 // number of chosen domains, by die
	sum    sum     // of the chosen domains
	size   int     // number of chosen domains
	dies   int     // number of dies of the chosen domains
}

// init allocates the memory of the search. Its tally must have been initialised.
func (s *search) init(buffers *scratch) {
	domains := len(s.domains)
	s.order, s.inDie, s.sum.whole = buffers.take(domains), buffers.take(s.zone.dies), buffers.take(len(s.sizes))
	s.chosen, s.kept, s.best = buffers.takeBools(domains), buffers.takeBools(domains), buffers.takeBools(domains)
	s.barred = buffers.takeBools(s.zone.dies)
	clear(s.kept)
	clear(s.barred)
}

// start orders the domains after the tally has changed, and chooses the kept domains.
func (s *search) start() {
	for i := range s.order {
		s.order[i] = int32(i)
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.free[a], s.free[b]),
			cmp.Compare(s.dieFree[s.domains[a].die], s.dieFree[s.domains[b].die]), cmp.Compare(a, b))
	})
	clear(s.sum.whole)
	clear(s.inDie)
	s.sum.shared, s.sum.free, s.size, s.dies = 0, 0, 0, 0
	for i := range s.chosen {
		if s.chosen[i] = false; s.kept[i] {
			s.choose(int32(i))
		}
	}
}

func (s *search) choose(domain int32) {
	s.sum.add(&s.tally, int(domain), 1)
	die := s.domains[domain].die
	if s.inDie[die]++; s.inDie[die] == 1 {
		s.dies++
	}
	s.chosen[domain] = true
	s.size++
}

func (s *search) drop(domain int32) {
	s.sum.add(&s.tally, int(domain), -1)
	die := s.domains[domain].die
	if s.inDie[die]--; s.inDie[die] == 0 {
		s.dies--
	}
	s.chosen[domain] = false
	s.size--
}

// all chooses every domain.
func (s *search) all() {
	for _, d := range s.order {
		if !s.chosen[d] {
			s.choose(d)
		}
	}
}

// fewest replaces the chosen domains with the best choice for the request's aim.
func (s *search) fewest(r *Request, n int) {
	s.all()
	s.aim = newAim(r, s.sizes, n, &s.sum)
	s.cover()
	s.exchange()
	s.limit = min(s.limit, s.cost(&s.sum))
	if s.fewerDies() {
		s.exchange()
	}
}

// cover chooses as few domains as possible, none in a barred die, and reports whether
// they meet the aim. It repeatedly adds the domain that helps most, and then drops the
// domains that are not necessary. The result is minimal if one number has to be reached,
// or one number and one odd CPU. With up to two threads per core, that is always so.
func (s *search) cover() bool {
	for _, d := range s.order {
		if s.chosen[d] && !s.kept[d] {
			s.drop(d)
		}
	}
	for !s.met(&s.sum) {
		best, most := int32(-1), -1
		for _, d := range s.order {
			if s.chosen[d] || s.free[d] == 0 || s.barred[s.domains[d].die] {
				continue
			}
			s.sum.add(&s.tally, int(d), 1)
			if help := s.help(&s.sum); help > most {
				best, most = d, help
			}
			s.sum.add(&s.tally, int(d), -1)
		}
		if best < 0 {
			return false
		}
		s.choose(best)
	}
	for _, d := range s.order {
		if !s.chosen[d] || s.kept[d] {
			continue
		}
		if s.drop(d); !s.met(&s.sum) {
			s.choose(d)
		}
	}
	return true
}

// exchange replaces chosen domains as long as that makes the choice cheaper, puts it in
// fewer dies, or makes it tighter.
func (s *search) exchange() {
	for changed := true; changed; {
		changed = false
		for rank, d := range s.order {
			if s.chosen[d] && !s.kept[d] && s.exchangeOne(rank) {
				changed = true
			}
		}
	}
}

// exchangeOne replaces the domain at this rank of the order with the best one, and
// reports whether that is a different domain.
func (s *search) exchangeOne(rank int) bool {
	best, cost, dies := rank, s.cost(&s.sum), s.dies
	old := s.order[rank]
	s.drop(old)
	for other, d := range s.order {
		if s.chosen[d] || d == old || s.free[d] == 0 {
			continue
		}
		diesThen := s.dies
		if s.inDie[s.domains[d].die] == 0 {
			diesThen++
		}
		s.sum.add(&s.tally, int(d), 1)
		if s.met(&s.sum) {
			costThen := s.cost(&s.sum)
			if cmp.Or(cmp.Compare(costThen, cost), cmp.Compare(diesThen, dies), cmp.Compare(other, best)) < 0 {
				best, cost, dies = other, costThen, diesThen
			}
		}
		s.sum.add(&s.tally, int(d), -1)
	}
	s.choose(s.order[best])
	return best != rank
}
