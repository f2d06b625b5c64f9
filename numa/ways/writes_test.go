package ways

import (
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// writable reports whether some order of single writes never makes an overlap.
func writable(now, wanted []Mask) bool {
	if slices.Equal(now, wanted) {
		return true
	}
	for i := range now {
		others := Mask(0)
		for j, m := range now {
			if j != i {
				others |= m
			}
		}
		if old := now[i]; old != wanted[i] && wanted[i]&others == 0 {
			now[i] = wanted[i] // an order never has to wait with a write that is possible
			return writable(now, wanted)
		}
	}
	return false
}

// carriedOut makes the writes and fails for one that a kernel or another claim would
// not bear. The masks that are left out of the plan are in present.
func carriedOut(tb testing.TB, cache numa.CacheAllocation, present map[string]Mask, p Plan) {
	tb.Helper()
	for i, w := range p {
		if w.From != present[w.ID] {
			tb.Fatalf("write %d of %s is from %s, but the mask is %s", i, p, w.From, present[w.ID])
		}
		if !cache.Sparse && !w.To.Contiguous() || w.To.Ways() < max(1, cache.MinBits) || !w.To.within(Mask(cache.Mask)) {
			tb.Fatalf("write %d of %s: the mask is not valid", i, p)
		}
		for id, other := range present {
			if id != w.ID && other&w.To != 0 {
				tb.Fatalf("write %d of %s overlaps %s: %s", i, p, id, other)
			}
		}
		present[w.ID] = w.To
	}
}

// presentOf is what the groups of changes have.
func presentOf(changes []Change) map[string]Mask {
	present := map[string]Mask{}
	for _, c := range changes {
		present[c.ID] = c.Present
	}
	return present
}
