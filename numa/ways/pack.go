package ways

import (
	"cmp"
	"math"
	"slices"
)

// piece is a claim that needs one run of ways.
type piece struct {
	claim int  // index in the list of changes
	ways  int  // how many it gets
	old   Mask // what it has, 0 if it needs a place
}

// A cost says how bad masks are. What matters most is in the highest bits: how many
// claims have another mask than before, how many ways that concerns, and the sum of the
// lowest ways of all claims. All of them are less than 64 × 64.
type cost int

const (
	perWay   cost = 1 << 12
	perMask  cost = 1 << 18
	hopeless cost = math.MaxInt
)

// move returns the cost of giving the piece another mask, without the cost of the place.
// A claim that moves counts with all of its ways, one that grows or shrinks with those
// that it did not have.
func (p *piece) move(mask Mask) cost {
	switch {
	case p.old == 0 || p.old == mask:
		return 0
	case p.old.Ways() == p.ways:
		return perMask + cost(p.ways)*perWay
	default:
		return perMask + cost((mask&^p.old).Ways())*perWay
	}
}

// cost returns the cost of giving the piece the mask.
func (p *piece) cost(mask Mask) cost {
	return p.move(mask) + cost(mask.first())
}

// pack gives each claim one run of ways.
func (a *Area) pack(changes []Change, sizes []int) {
	var placed, unplaced []piece
	var taken Mask
	resized := false
	for i := range changes {
		c := &changes[i]
		p := piece{claim: i, ways: sizes[i], old: c.Present}
		valid := p.old.Contiguous() && p.old.within(a.Allowed&^taken)
		switch {
		case valid && p.old.within(a.Usable):
			placed = append(placed, p)
			resized = resized || p.old.Ways() != p.ways
		case valid && p.old&a.Usable == 0 && p.old.Ways() == p.ways:
			c.Wanted = p.old
		default:
			p.old = 0
			unplaced = append(unplaced, p)
		}
		taken |= p.old
	}
	slices.SortFunc(placed, func(x, y piece) int { return cmp.Compare(x.old, y.old) })
	row, masks, least := slide(a.Usable, placed, unplaced)
	if least >= perMask && len(unplaced) == 1 && !resized {
		c := clearing{area: a.Usable, pieces: placed, budget: mostClearing, least: least}
		if c.search(unplaced[0].ways) {
			row, masks = append(placed, unplaced[0]), c.best
		}
	}
	for i, p := range row {
		changes[p.claim].Wanted = masks[i]
	}
}

// slide places claims in the order in which they have their masks. It inserts each
// unplaced claim where this costs least, as low as possible.
func slide(area Mask, placed, unplaced []piece) (row []piece, masks []Mask, least cost) {
	row = placed
	for _, p := range unplaced {
		best, at := hopeless, 0
		for i := range len(row) + 1 {
			if t := tabulate(area, slices.Insert(slices.Clone(row), i, p)); t.least() < best {
				best, at = t.least(), i
			}
		}
		row = slices.Insert(slices.Clone(row), at, p)
	}
	t := tabulate(area, row)
	return row, t.masks(), t.least()
}

// table has the least cost of placing a row of claims from left to right.
type table struct {
	area   Mask
	row    []piece
	places int
	costs  []cost // at [i*places+w]: of the claims from i on, in the ways from w on
}

// tabulate fills the table from its end.
func tabulate(area Mask, row []piece) table {
	t := table{area: area, row: row, places: area.Ways() + 1}
	t.costs = make([]cost, (len(row)+1)*t.places)
	for i := len(row) - 1; i >= 0; i-- {
		for w := t.places - 1; w >= 0; w-- {
			t.costs[i*t.places+w] = min(t.here(i, w), t.later(i, w))
		}
	}
	return t
}

func (t *table) least() cost {
	return t.costs[0]
}

// mask returns the run of claim i that begins at way w of the area.
func (t *table) mask(i, w int) Mask {
	return run(t.area.first()+w, t.row[i].ways)
}

// here returns the cost if claim i begins at way w.
func (t *table) here(i, w int) cost {
	end := w + t.row[i].ways
	if end >= t.places {
		return hopeless
	}
	rest := t.costs[(i+1)*t.places+end]
	if rest == hopeless {
		return hopeless
	}
	return rest + t.row[i].cost(t.mask(i, w))
}

// later returns the cost if claim i begins above way w.
func (t *table) later(i, w int) cost {
	if w+1 == t.places {
		return hopeless
	}
	return t.costs[i*t.places+w+1]
}

// masks returns the places that cost least, each as low as possible.
func (t *table) masks() []Mask {
	masks := make([]Mask, len(t.row))
	w := 0
	for i := range t.row {
		for t.here(i, w) > t.later(i, w) {
			w++
		}
		masks[i] = t.mask(i, w)
		w += t.row[i].ways
	}
	return masks
}
