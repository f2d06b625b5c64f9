package ways

import (
	"errors"
	"fmt"
	"testing"
)

// Any claims with any masks, also such that overlap or lie outside, get disjoint masks
// of the right size or an error.
func FuzzArrange(f *testing.F) {
	f.Add(uint64(0x7fe), uint64(0), uint8(1), []byte{4, 4, 1, 3, 3, 5, 3, 3, 8, 5, 5, 0})
	f.Add(uint64(0x3f800), uint64(0x1000), uint8(7), []byte{2, 5, 11, 2, 5, 0, 2, 5, 13})
	f.Add(uint64(0xfff0), uint64(0), uint8(2), []byte{2, 2, 4, 2, 2, 5, 3, 9, 6})
	f.Fuzz(func(t *testing.T, pool, foreign uint64, flags uint8, list []byte) {
		pool &= 1<<32 - 1
		cache := cacheOf(32, int(flags&3))
		cache.Sparse = flags&8 != 0
		area := Offer(cache, Mask(pool), Mask(foreign))
		area.Growing = flags&4 != 0
		var claims []Claim
		for i := 0; i+2 < len(list) && i < 3*12; i += 3 {
			c := Claim{ID: fmt.Sprint(i), Min: int(list[i] % 9), Max: int(list[i+1] % 17)}
			if first := int(list[i+2] % 33); first > 0 {
				c.Mask = run(first-1, max(1, c.Min)) & (1<<32 - 1)
			}
			claims = append(claims, c)
		}
		changes, err := area.Arrange(claims)
		if err != nil {
			return
		}
		var taken Mask
		for i, c := range changes {
			n := c.Wanted.Ways()
			if c.Wanted&taken != 0 || n < claims[i].Min || n > claims[i].Max || !area.Growing && n != claims[i].Min ||
				!cache.Sparse && !c.Wanted.Contiguous() || !c.Wanted.within(area.Allowed) {
				t.Fatalf("%+v for %+v: %v", area, claims, changes)
			}
			taken |= c.Wanted
		}
		p, err := Order(cache, changes)
		if err != nil && !errors.Is(err, ErrNoOrder) {
			t.Fatalf("%v: %v", changes, err)
		}
		carriedOut(t, cache, presentOf(changes), p)
	})
}
