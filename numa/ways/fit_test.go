package ways

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

func TestPoolsThatFitACache(t *testing.T) {
	shareable := func(n int, mask uint64) numa.CacheAllocation {
		c := cacheOf(n, 1)
		c.ShareableMask = mask
		return c
	}
	for _, row := range []struct {
		cache numa.CacheAllocation
		want  Config
	}{
		{cacheOf(20, 1), Config{OS: 1, Guaranteed: 11, BestEffort: 6, Shared: 2}},
		{shareable(20, 0xc0000), Config{OS: 1, Guaranteed: 11, BestEffort: 6, Shared: 2}},
		{shareable(15, 0x6000), Config{OS: 1, Guaranteed: 7, BestEffort: 5, Shared: 2}},
		{shareable(11, 0x600), Config{OS: 1, Guaranteed: 5, BestEffort: 3, Shared: 2}},
		{shareable(12, 0xfff), Config{OS: 1, Guaranteed: 6, BestEffort: 4, Shared: 1}}, // Arm: all are for devices, too
		{cacheOf(12, 2), Config{OS: 2, Guaranteed: 4, BestEffort: 4, Shared: 2}},
		{cacheOf(4, 1), Config{OS: 1, Guaranteed: 1, BestEffort: 1, Shared: 1}},
		{cacheOf(3, 1), Config{OS: 1, Guaranteed: 1, Shared: 1}},
		{cacheOf(2, 1), Config{OS: 1, Guaranteed: 1}},
	} {
		if got, err := Fit(row.cache); err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s of %d ways, shareable %x: %+v, %v, want %+v", row.cache.Name, Mask(row.cache.Mask).Ways(), row.cache.ShareableMask, got, err, row.want)
		}
	}
	if got, err := Fit(cacheOf(1, 1)); err == nil {
		t.Errorf("one way is enough for %+v", got)
	}
}

// Whatever devices use of a cache, there are pools unless it has no two ways that they leave.
func TestPoolsFitEveryCache(t *testing.T) {
	for ways := 2; ways <= 12; ways++ {
		for shareable := range uint64(1) << ways {
			for _, sparse := range []bool{false, true} {
				cache := cacheOf(ways, 1)
				cache.ShareableMask, cache.Sparse = shareable, sparse
				config, err := Fit(cache)
				name := fmt.Sprintf("%d ways, shareable %b, sparse %t", ways, shareable, sparse)
				_, least := Divide(cache, Config{OS: 1, Guaranteed: 1})
				switch {
				case (err == nil) != (least == nil):
					t.Fatalf("%s: %+v, %v, and a claim with one way: %v", name, config, err, least)
				case err != nil:
					continue
				}
				if _, err := Divide(cache, config); err != nil || config.Guaranteed < 1 {
					t.Fatalf("%s: %+v, %v", name, config, err)
				}
			}
		}
	}
}
