package pick

import "math"

// aim says what domains must have together so that n CPUs can be chosen from them, and
// what that choice costs. A whole core is completely free; a broken core is partly free.
type aim struct {
	classes []int // number of CPUs of a whole core, by class
	n       int
	single  bool // SingleThreads: any part of a whole core may be taken
	byFree  bool // n free CPUs are enough
	nearest bool // whole cores do not justify an additional L3
	whole   int  // CPUs to take from whole cores, ≤ n
	shared  int  // CPUs to take from broken cores, ≤ n
	breaks  bool // a whole core has to be broken; not used for single threads
	goal    int  // the value of reached for domains that are enough
	limit   int  // the most that the choice may cost
}

// newAim returns an aim that all domains together meet.
func newAim(r *Request, sizes []int, n int, all *sum) aim {
	a := aim{classes: sizes, n: n, single: r.Cores == SingleThreads}
	if a.single {
		a.shared = min(n, all.shared)
		a.whole = n - a.shared
	} else {
		_, rest, _ := all.fill(sizes, n)
		a.whole, a.shared = n, rest
		if a.breaks = rest > all.shared; a.breaks {
			a.shared = 0 // all of the rest comes from one core
		}
	}
	a.limit = a.cost(all)
	// The search finds the cheapest choice among those with the fewest L3s.
	if r.L3 == PreferOneL3 {
		a.nearest, a.byFree = true, a.single || a.breaks
		a.limit = math.MaxInt
	}
	a.goal = a.reached(all)
	return a
}

// reached returns how close the domains are to being enough.
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

// cost returns what a choice from the domains costs. They must have n free CPUs. For
// single threads, the cost is the number of whole cores that the choice uses, the last
// one perhaps only in part. Otherwise it is twice the number of CPUs on cores that the
// claim shares, plus one if the choice breaks a whole core.
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

// help returns how close the domains are to a choice: a higher value is closer. It is
// below the goal while the choice costs too much.
func (a *aim) help(s *sum) int {
	reached := a.reached(s)
	if reached >= a.goal && a.cost(s) > a.limit {
		return a.goal - 1
	}
	return reached
}
