package ways

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// node is one cache with claims in two pools.
type node struct {
	tb    testing.TB
	cache numa.CacheAllocation
	pools [2]Mask
	areas [2]Area // guaranteed, besteffort
	held  [2][]Claim

	refused, moved, undone, temporary, stuck int
}

// randomNode is a cache with both pools.
func randomNode(tb testing.TB, r *rand.Rand) *node {
	for {
		n := 6 + r.IntN(27)
		cache := cacheOf(n, 1+r.IntN(2))
		cache.Sparse = r.IntN(5) == 0
		if r.IntN(2) == 0 {
			cache.ShareableMask = uint64(3) << r.IntN(n-1)
		}
		p, err := Divide(cache, Config{OS: 2, Guaranteed: 2 + r.IntN(n), BestEffort: 2 + r.IntN(n)})
		if err == nil {
			x := &node{tb: tb, cache: cache, pools: [2]Mask{p.Guaranteed, p.BestEffort}}
			x.foreign(r, 0)
			return x
		}
	}
}

// foreign is what another tool takes.
func (x *node) foreign(r *rand.Rand, mask Mask) {
	for i, pool := range x.pools {
		x.areas[i] = Offer(x.cache, pool, mask)
		x.areas[i].Growing = r.IntN(4) > 0
	}
}

// change gives both pools the claims, if it can. A write fails if there are that many.
func (x *node) change(held [2][]Claim, fails int) bool {
	x.tb.Helper()
	var all []Change
	for i := range held {
		changes, err := x.areas[i].Arrange(held[i])
		need := 0
		sizes, _ := x.areas[i].Sizes(held[i])
		for k, c := range held[i] {
			need += c.Min
			if err == nil && sizes[k] != changes[k].Wanted.Ways() {
				x.tb.Fatalf("%+v for %+v: sizes %v, want those of %v", x.areas[i], held[i], sizes, changes)
			}
		}
		if (err != nil) != (need > x.areas[i].Usable.Ways()) || err != nil && !errors.Is(err, ErrNotEnough) {
			x.tb.Fatalf("%+v for %+v: %v", x.areas[i], held[i], err)
		}
		if err != nil {
			x.refused++
			return false
		}
		all = append(all, changes...)
	}
	p, err := Order(x.cache, all)
	if err != nil {
		x.stuck++
		return false
	}
	x.moved += max(0, len(p)-1)
	x.temporary += strings.Count(p.String(), "temporary")
	carriedOut(x.tb, x.cache, presentOf(all), p)
	if fails < len(p) {
		x.undone++
		return false
	}
	for i := range held {
		for k := range held[i] {
			held[i][k].Mask, all = all[0].Wanted, all[1:]
		}
	}
	x.held = held
	return true
}

// check says what is wrong with the masks.
func (x *node) check() string {
	var taken Mask
	for i, a := range x.areas {
		total, most := 0, 0
		for _, c := range x.held[i] {
			n := c.Mask.Ways()
			total, most = total+n, most+c.Max
			switch {
			case c.Mask&taken != 0:
				return fmt.Sprintf("%s overlaps", c.ID)
			case !c.Mask.within(a.Allowed) || !x.cache.Sparse && !c.Mask.Contiguous():
				return fmt.Sprintf("%s has %s", c.ID, c.Mask)
			case n < c.Min || n > c.Max || !a.Growing && n != c.Min:
				return fmt.Sprintf("%s has %d ways of %d to %d", c.ID, n, c.Min, c.Max)
			}
			taken |= c.Mask
			for _, other := range x.held[i] {
				if other.Mask.Ways() > n+1 && other.Mask.Ways() > other.Min && n < c.Max && a.Growing {
					return fmt.Sprintf("%s has more than %s", other.ID, c.ID)
				}
			}
		}
		if want := min(most, a.Usable.Ways()); a.Growing && total != want {
			return fmt.Sprintf("the claims have %d ways of %s, want %d", total, a.Usable, want)
		}
	}
	return ""
}

func TestRandomClaimsNeverOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 20))
	var x *node
	var sum node
	for step := range 100_000 {
		if step%1000 == 0 {
			x = randomNode(t, r)
		}
		i, before := r.IntN(2), *x
		held := [2][]Claim{slices.Clone(x.held[0]), slices.Clone(x.held[1])}
		switch action := r.IntN(100); {
		case action == 0: // another tool comes or goes
			x.foreign(r, []Mask{0, run(r.IntN(32), 1+r.IntN(4))}[r.IntN(2)])
		case action < 45 && len(held[i]) > 0:
			at := r.IntN(len(held[i]))
			held[i] = slices.Delete(held[i], at, at+1)
		default:
			least := max(1, x.cache.MinBits) + r.IntN(4)
			held[i] = append(held[i], Claim{ID: fmt.Sprint(step), Min: least, Max: least + i*r.IntN(6)})
		}
		fails := 1000
		if r.IntN(20) == 0 {
			fails = r.IntN(3)
		}
		if !x.change(held, fails) {
			x.areas, x.held = before.areas, before.held
		}
		if wrong := x.check(); wrong != "" {
			t.Fatalf("step %d: %s: %+v", step, wrong, x)
		}
		sum.refused, sum.moved, sum.undone = sum.refused+x.refused-before.refused, sum.moved+x.moved-before.moved, sum.undone+x.undone-before.undone
		sum.temporary, sum.stuck = sum.temporary+x.temporary-before.temporary, sum.stuck+x.stuck-before.stuck
	}
	t.Logf("refused %d, moved %d, undone %d, temporary masks %d, without order %d", sum.refused, sum.moved, sum.undone, sum.temporary, sum.stuck)
	if sum.refused < 10_000 || sum.moved < 5_000 || sum.undone < 500 || sum.stuck > 0 {
		t.Error("too few have been tried, or some had no order")
	}
}
