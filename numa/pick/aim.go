package pick

import "math"

// aim is what domains must have together to be a choice for n CPUs, and what the choice from them costs.
type aim struct {
	classes []int // how many CPUs a whole core has
	n       int
	single  bool // SingleThreads: any part of a fresh core may be taken
	byFree  bool // n free CPUs are enough
	nearest bool // whole cores are worth no L3 more
	whole   int  // CPUs to be taken from fresh cores, ≤ n
	shared  int  // CPUs to be had from broken cores, ≤ n
	breaks  bool // a part of a fresh core has to be taken; unused for single threads
	goal    int  // what reached returns for domains that are enough
	limit   int  // what the choice may cost
}

// newAim returns the aim that all domains together reach.
func newAim(r *Request, sizes []int, n int, all *sum) aim {
	a := aim{classes: sizes, n: n, single: r.Cores == SingleThreads}
	if a.single {
		a.shared = min(n, all.shared)
		a.whole = n - a.shared
	} else {
		_, rest, _ := all.fill(sizes, n)
		a.whole, a.shared = n, rest
		if a.breaks = rest > all.shared; a.breaks {
			a.shared = 0 // then all of the rest is in one core
		}
	}
	a.limit = a.cost(all)
	// Which fewest L3s cost least, the search finds by itself.
	if r.L3 == PreferOneL3 {
		a.nearest, a.byFree = true, a.single || a.breaks
		a.limit = math.MaxInt
	}
	a.goal = a.reached(all)
	return a
}

// reached returns how near the domains are to being enough.
func (a *aim) reached(s *sum) int {
	if a.byFree {
		return min(a.n, s.free)
	}
	_, rest, spare := s.fill(a.classes, a.whole)
	got := a.whole - rest
	if a.nearest {
		return got + min(s.shared, rest)
	}
	got += min(s.shared, a.shared)
	switch enough := rest == 0 || spare; {
	case a.single && enough:
		got += rest // from one more core
	case a.breaks && enough:
		got++ // there is a core to break
	}
	return got
}

// cost returns what a choice from the domains costs, which must have n free CPUs: the fresh cores that single threads
// open, else twice the CPUs on cores that the claim does not have alone, and one more if a fresh core is broken.
func (a *aim) cost(s *sum) int {
	if !a.single {
		_, rest, _ := s.fill(a.classes, a.n)
		if rest > s.shared {
			return 2*rest + 1
		}
		return 2 * rest
	}
	cores, rest, _ := s.fill(a.classes, a.n-min(a.n, s.shared))
	if rest > 0 {
		cores++
	}
	return cores
}

// met reports whether the domains are enough.
func (a *aim) met(s *sum) bool { return a.reached(s) >= a.goal && a.cost(s) <= a.limit }

// help returns what domains are worth on the way to a choice: the more, the nearer it is.
func (a *aim) help(s *sum) int {
	reached := a.reached(s)
	if reached >= a.goal && a.cost(s) > a.limit {
		return a.goal - 1
	}
	return reached
}
