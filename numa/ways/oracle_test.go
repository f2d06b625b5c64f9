package ways

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// layouts are all sets of runs of at least the given length in the ways from first on,
// below end.
func layouts(first, end, least int) (all [][]Mask) {
	if first >= end {
		return [][]Mask{nil}
	}
	all = layouts(first+1, end, least)
	for n := least; first+n <= end; n++ {
		for _, rest := range layouts(first+n, end, least) {
			all = append(all, append([]Mask{run(first, n)}, rest...))
		}
	}
	return all
}

// fixed are claims that keep their number of ways.
func fixed(masks []Mask) (claims []Claim) {
	for i, m := range masks {
		claims = append(claims, Claim{ID: fmt.Sprint(i), Min: m.Ways(), Max: m.Ways(), Mask: m})
	}
	return claims
}

// cheapest is the least cost of making room for n ways, as every arrangement of the
// claims tells, if each is written at most once.
type cheapest struct {
	area   Mask
	old    []Mask
	masks  []Mask
	window Mask
	least  cost
}

func leastCost(area Mask, old []Mask, n int) cost {
	c := cheapest{area: area, old: old, masks: make([]Mask, len(old)), least: hopeless}
	for _, c.window = range runsOf(n, area) {
		c.try(0, cost(c.window.first()))
	}
	return c.least
}

func (c *cheapest) try(i int, spent cost) {
	if spent >= c.least {
		return
	}
	if i == len(c.old) {
		if writable(slices.Clone(c.old), c.masks) {
			c.least = spent
		}
		return
	}
	free := c.area &^ c.window
	for _, m := range c.masks[:i] {
		free &^= m
	}
	for _, to := range runsOf(c.old[i].Ways(), free) {
		c.masks[i] = to
		c.try(i+1, spent+price(Change{Present: c.old[i], Wanted: to}))
	}
}

// price counts what changes cost where all claims keep their number of ways.
func price(changes ...Change) (sum cost) {
	for _, c := range changes {
		if c.Present != 0 && c.Present != c.Wanted {
			sum += perMask + cost(c.Wanted.Ways())*perWay
		}
		sum += cost(c.Wanted.first())
	}
	return sum
}

// Every claim that fits in sum is served, by the fewest moves of all that need no
// temporary mask, and no write makes an overlap.
func TestWhateverFitsIsServedByTheFewestMoves(t *testing.T) {
	tried, moving, jumping := 0, 0, 0
	for _, minBits := range []int{1, 2} {
		largest := 9 + minBits
		for n := 1; n <= largest; n++ {
			cache := cacheOf(n+1, minBits)
			pool := run(1, n)
			area := Offer(cache, pool)
			for _, old := range layouts(1, n+1, minBits) {
				free := pool
				for _, m := range old {
					free &^= m
				}
				for want := minBits; want <= n; want++ {
					claims := append(fixed(old), Claim{ID: "new", Min: want, Max: want})
					changes, err := area.Arrange(claims)
					if want > free.Ways() {
						if !errors.Is(err, ErrNotEnough) {
							t.Fatalf("%v and %d new ways of %s: %v", old, want, pool, err)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%v and %d new ways of %s: %v", old, want, pool, err)
					}
					tried++
					p, err := Order(cache, changes)
					if err != nil {
						t.Fatal(err)
					}
					present := presentOf(changes)
					carriedOut(t, cache, present, p)
					if len(p) != int(price(changes...)/perMask)+1 {
						t.Fatalf("%v has temporary masks", p)
					}
					if got := present["new"]; got.Ways() != want || !got.within(pool) {
						t.Fatalf("%d new ways of %s are %s", want, pool, got)
					}
					if got, least := price(changes...), leastCost(pool, old, want); got != least {
						t.Fatalf("%v and %d new ways of %s: %v costs %x, but %x is possible", old, want, pool, p, got, least)
					}
					if len(p) > 1 {
						moving++
						if _, _, slid := slide(pool, piecesOf(old), []piece{{ways: want}}); slid-price(changes...) >= perMask {
							jumping++
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases, %d with moves, %d where sliding alone needs more", tried, moving, jumping)
	if tried < 5000 || moving < 500 || jumping < 100 {
		t.Error("these are too few")
	}
}

func piecesOf(masks []Mask) (row []piece) {
	for _, m := range masks {
		row = append(row, piece{ways: m.Ways(), old: m})
	}
	return row
}
