package quota

import (
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/api/resource"
)

// random makes up objects.
type random struct{ *rand.Rand }

// chance is true in so many of 100 cases.
func (r random) chance(percent int) bool { return r.IntN(100) < percent }

// pick returns one of a list.
func pick[T any](r random, list ...T) T { return list[r.IntN(len(list))] }

// weighted returns one of a list, with a weight for each.
func weighted[T any](r random, list []choice[T]) T {
	sum := 0
	for _, c := range list {
		sum += c.weight
	}
	left := r.IntN(sum)
	for _, c := range list {
		if left -= c.weight; left < 0 {
			return c.value
		}
	}
	panic("unreachable: left is less than the sum of the weights")
}

// choice is an element of a list with its weight.
type choice[T any] struct {
	weight int
	value  T
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }
