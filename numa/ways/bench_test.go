package ways

import "testing"

// BenchmarkPlan chooses masks and the order of their writes. The budget is 100 µs where
// nothing moves or all grow, and 10 ms where others have to move.
func BenchmarkPlan(b *testing.B) {
	full := func(n int) (masks []Mask) {
		for i := range n {
			masks = append(masks, run(1+2*i, 1+i%2))
		}
		return masks
	}
	var growing []Claim
	for _, c := range fixed(full(6)) {
		c.Max = 9
		growing = append(growing, c)
	}
	for _, row := range []struct {
		name   string
		ways   int
		claims []Claim
	}{
		{"20ways/hole", 20, append(fixed(full(5)), Claim{ID: "new", Min: 4, Max: 4})},
		{"20ways/moves", 20, append(fixed(full(8)), Claim{ID: "new", Min: 6, Max: 6})},
		{"20ways/grow", 20, append(growing, Claim{ID: "new", Min: 2, Max: 4})},
		{"32ways/moves", 32, append(fixed(full(15)), Claim{ID: "new", Min: 8, Max: 8})},
	} {
		cache := cacheOf(row.ways, 1)
		area := Offer(cache, run(1, row.ways-1))
		area.Growing = true
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				changes, err := area.Arrange(row.claims)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Order(cache, changes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
