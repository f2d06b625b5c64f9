package ways

import "slices"

// A plan has at most mostTemporary temporary masks. For each effort and each number of
// temporary masks, at most mostTried masks are tried.
const (
	mostTemporary = 4
	mostTried     = 1 << 14
)

// effort is what may be done to a group that stands in the way.
type effort struct {
	shrink  bool // it may have fewer ways for a time
	settled bool // even if it has what it wants
}

// around completes the plan with temporary masks, with the least effort and with as few
// of them as possible. It reports whether it could.
func (o *ordering) around() bool {
	for _, e := range []effort{{}, {shrink: true}, {shrink: true, settled: true}} {
		for temporary := 1; temporary <= mostTemporary; temporary++ {
			o.budget = mostTried
			if o.detour(temporary, e) {
				return true
			}
		}
	}
	return false
}

// detour gives groups up to the given number of temporary masks. After each, it writes
// all wanted masks that are free then. If that does not complete the plan, detour leaves
// the plan as it was.
func (o *ordering) detour(temporary int, e effort) bool {
	if o.budget--; temporary == 0 || o.budget < 0 {
		return false
	}
	masks, writes := slices.Clone(o.masks), len(o.plan)
	for i, c := range o.changes {
		if masks[i] == 0 || masks[i] == c.Wanted && !e.settled {
			continue
		}
		for _, to := range o.aside(i, e) {
			o.write(i, to)
			if o.straight(i); o.done() || o.detour(temporary-1, e) {
				return true
			}
			copy(o.masks, masks)
			o.plan = o.plan[:writes]
		}
	}
	return false
}

// aside returns the temporary masks that group i can have now, those with the most ways
// first.
func (o *ordering) aside(i int, e effort) (list []Mask) {
	most := min(o.masks[i].Ways(), o.changes[i].Wanted.Ways())
	least := most
	if e.shrink {
		least = o.minWays
	}
	for n := most; n >= least; n-- {
		for _, m := range runsOf(n, o.free(i)) {
			if m != o.masks[i] && m != o.changes[i].Wanted {
				list = append(list, m)
			}
		}
	}
	return list
}

// runsOf returns all runs of n ways in the mask.
func runsOf(n int, m Mask) (list []Mask) {
	for first := m.first(); first+n <= m.end(); first++ {
		if r := run(first, n); r.within(m) {
			list = append(list, r)
		}
	}
	return list
}
