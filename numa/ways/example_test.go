package ways_test

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

func ExampleDivide() {
	cache := numa.CacheAllocation{Name: "L3", Mask: 0xfffff, MinBits: 1}
	pools, err := ways.Divide(cache, ways.Config{OS: 1, Infra: 19, Guaranteed: 10, BestEffort: 7, Shared: 2})
	fmt.Println(pools.OS, pools.Infra, pools.Guaranteed, pools.BestEffort, pools.Shared, err)

	_, err = ways.Divide(cache, ways.Config{OS: 1, Guaranteed: 10, BestEffort: 8, Shared: 2})
	fmt.Println(err)
	// Output:
	// 1 ffffe 7fe 3f800 c0000 <nil>
	// divide the 20 ways of L3: os 1 + guaranteed 10 + besteffort 8 + shared 2 = 21 ways: the cache has 20
}

// Claims of 4, 3 and 3 ways filled a pool of 10. The first and the last have gone, and
// one of 5 ways comes: the one that is left makes room.
func ExampleArea_Arrange() {
	cache := numa.CacheAllocation{Name: "L3", Mask: 0xfffff, MinBits: 1}
	pool := ways.Offer(cache, 0x7fe)
	changes, err := pool.Arrange([]ways.Claim{
		{ID: "middle", Min: 3, Max: 3, Mask: 0xe0},
		{ID: "new", Min: 5, Max: 5},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := ways.Order(cache, changes)
	fmt.Println(plan, err)
	// Output:
	// middle: e0 -> e, new: 0 -> 1f0 <nil>
}

// A claim of the best effort pool has all that it may have, until others come.
func ExampleArea_Arrange_growing() {
	cache := numa.CacheAllocation{Name: "L3", Mask: 0xfffff, MinBits: 1}
	pool := ways.Offer(cache, 0x3f800)
	pool.Growing = true
	var claims []ways.Claim
	for _, id := range []string{"a", "b", "c", "d"} {
		changes, err := pool.Arrange(append(claims, ways.Claim{ID: id, Min: 2, Max: 5}))
		if err != nil {
			fmt.Println(err)
			return
		}
		plan, err := ways.Order(cache, changes)
		fmt.Println(plan, err)
		claims = nil
		for _, c := range changes {
			claims = append(claims, ways.Claim{ID: c.ID, Min: 2, Max: 5, Mask: c.Wanted})
		}
	}
	// Output:
	// a: 0 -> f800 <nil>
	// a: f800 -> 7800, b: 0 -> 38000 <nil>
	// a: 7800 -> 3800, b: 38000 -> 30000, c: 0 -> c000 <nil>
	// arrange ways 3f800: 3 claims keep 6 ways, new ones need 2, the pool offers 7: not enough ways
}

// Two claims exchange their ways in a full pool.
func ExampleOrder() {
	cache := numa.CacheAllocation{Name: "L3", Mask: 0xfffff, MinBits: 1}
	plan, err := ways.Order(cache, []ways.Change{
		{ID: "a", Present: 0x7, Wanted: 0x1c},
		{ID: "b", Present: 0x18, Wanted: 0x3},
	})
	fmt.Println(plan, err)
	// Output: a: 7 -> 4 (temporary), b: 18 -> 3, a: 4 -> 1c <nil>
}
