package ways

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Area is the part of a pool that claims can have; see [Offer].
type Area struct {
	// Usable are the ways that claims are placed in: one run, or any ways of a cache that
	// takes sparse masks; 0 if nothing is left. Their number is what the pool can offer.
	Usable Mask
	// Allowed ⊇ Usable are all ways of the pool that no other tool has. A claim that has
	// ways there keeps them.
	Allowed Mask
	// Growing gives claims more ways than their minimum while ways are free.
	Growing bool

	minWays int
	sparse  bool
}

// Offer returns what the masks of other tools leave of a pool. These masks cannot be
// moved. So claims can have the longest run of the other ways and, of several such runs,
// the lowest. If even that is shorter than min_cbm_bits, they can have nothing. If the
// cache takes sparse masks, claims can have all other ways.
func Offer(cache numa.CacheAllocation, pool Mask, foreign ...Mask) Area {
	a := Area{Allowed: pool, minWays: minWays(&cache), sparse: cache.Sparse}
	for _, mask := range foreign {
		a.Allowed &^= mask
	}
	if a.Usable = a.Allowed; !a.sparse {
		a.Usable = a.Allowed.longest()
	}
	if a.Usable.Ways() < a.minWays {
		a.Usable = 0
	}
	return a
}

// Claim is what a claim wants of a pool, and has of it.
type Claim struct {
	ID   string // not that of another claim of the list
	Min  int    // ≥ min_cbm_bits: it always has that many ways
	Max  int    // ≥ Min, the same for a guaranteed claim; it grows up to it if the area is Growing
	Mask Mask   // what it has, 0 for a new claim
}

// Arrange gives all claims of a pool their masks: disjoint, inside Usable, and one run
// each unless the cache takes sparse masks. It returns a Change for each claim, in the
// order of the list. Call it when a claim is added, with the new claim in the list, and
// when a claim has ended, without that claim.
//
// Numbers of ways. Each claim has at least its minimum. If the area is Growing, each way
// that is left goes to the claim that has the fewest and may have more. If several claims
// have as few, the first in the list gets it. So the ways are shared as evenly as minima
// and maxima allow, and it does not matter which masks the claims had before. List them
// in the order in which they came.
//
// Places. If there are enough ways in sum, each claim gets a place: if a new claim fits
// nowhere, Arrange moves others. Of all places, it takes those that
//   - change the masks of the fewest claims;
//   - move the fewest ways: all ways of a claim that keeps their number, and of others
//     those that they did not have;
//   - are the lowest, as the sum of each claim's lowest way.
//
// If there is one new claim, and the others keep their numbers of ways, they may move
// anywhere, as long as no temporary mask is needed. In all other cases the claims that
// have a mask keep their order, so that they only slide, grow and shrink. A search that
// takes too many steps ends with the best places that it has found.
//
// [Order] puts the changes into an order without temporary masks, unless a claim was
// misplaced: a mask that overlaps another, or is partly outside of Usable.
//
// An error wraps [ErrNotEnough] if and only if the minima are more ways than Usable
// has. All other errors name a claim that is not valid.
func (a Area) Arrange(claims []Claim) ([]Change, error) {
	sizes, err := a.Sizes(claims)
	if err != nil {
		return nil, fmt.Errorf("arrange ways %s: %w", a.Usable, err)
	}
	changes := make([]Change, len(claims))
	for i, c := range claims {
		changes[i] = Change{ID: c.ID, Present: c.Mask}
	}
	if a.sparse {
		a.fill(changes, sizes)
	} else {
		a.pack(changes, sizes)
	}
	return changes, nil
}

// Sizes returns how many ways Arrange gives each claim. It is an error where Arrange has one.
func (a Area) Sizes(claims []Claim) ([]int, error) {
	if err := a.check(claims); err != nil {
		return nil, err
	}
	sizes := make([]int, len(claims))
	left := a.Usable.Ways()
	for i, c := range claims {
		sizes[i] = c.Min
		left -= c.Min
	}
	for ; a.Growing && left > 0; left-- {
		smallest := -1
		for i, c := range claims {
			if sizes[i] < c.Max && (smallest < 0 || sizes[i] < sizes[smallest]) {
				smallest = i
			}
		}
		if smallest < 0 {
			break
		}
		sizes[smallest]++
	}
	return sizes, nil
}

// check returns an error for claims that are not valid or are too many.
func (a *Area) check(claims []Claim) error {
	ids := map[string]bool{}
	held, wanted, placed := 0, 0, 0
	least := max(1, a.minWays)
	for _, c := range claims {
		if ids[c.ID] {
			return fmt.Errorf("claim %q is in the list twice", c.ID)
		}
		ids[c.ID] = true
		if c.Min < least || c.Max < c.Min || c.Max > 64 {
			return fmt.Errorf("claim %q of %d to %d ways: allowed are %d ≤ minimum ≤ maximum ≤ 64", c.ID, c.Min, c.Max, least)
		}
		if c.Mask != 0 {
			placed++
			held += c.Min
		} else {
			wanted += c.Min
		}
	}
	if total := a.Usable.Ways(); held+wanted > total {
		return fmt.Errorf("%d claims keep %d ways, new ones need %d, the pool offers %d: %w", placed, held, wanted, total, ErrNotEnough)
	}
	return nil
}

// longest returns the longest run of the mask, the lowest of several.
func (m Mask) longest() (longest Mask) {
	for _, r := range m.runs() {
		if r.Ways() > longest.Ways() {
			longest = r
		}
	}
	return longest
}

// fill gives claims any ways. No claim loses a usable way that it may keep.
func (a *Area) fill(changes []Change, sizes []int) {
	free := a.Usable
	for i := range changes {
		c := &changes[i]
		c.Wanted = (c.Present & free).lowest(sizes[i])
		free &^= c.Wanted
	}
	for i := range changes {
		more := free.lowest(sizes[i] - changes[i].Wanted.Ways())
		changes[i].Wanted |= more
		free &^= more
	}
}
