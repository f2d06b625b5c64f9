// Package effect decides about a value of the kernel that is changed for a while: what to give
// back, and what stays because another program has written it. It knows no files, and nothing of
// claims.
package effect

import "slices"

// Value is a value of the kernel that is changed for a while. The zero T stands for what is not
// known, or not asked: the kernel never shows it.
type Value[T comparable] struct {
	First T // before anybody asked
	Was   T // before the last write, which may not be done; zero if Got is known
	Asked T
	Got   T // what the kernel made of Asked
}

// ours reports whether the kernel shows this because of what was asked.
func (v Value[T]) ours(shown T) bool {
	var none T
	return shown != none && slices.Contains([]T{v.Was, v.Asked, v.Got}, shown)
}

// Back returns what to give back if the kernel shows this: First, or zero if another program has
// written since.
func (v Value[T]) Back(shown T) (back T) {
	if v.ours(shown) {
		back = v.First
	}
	return back
}

// Made returns what the kernel made of Asked if it shows this after the write: zero if nothing is
// asked.
func (v Value[T]) Made(shown T) (got T) {
	if v.Asked != got {
		got = shown
	}
	return got
}

// Probe returns what the kernel made of Asked if it shows this after a crash. If that is a value
// that is not known, it may be so, or another program's. Then the same is applied again, that is
// written and read back, and the other program's value if the kernel makes something else of it.
func (v Value[T]) Probe(shown T, apply func(T) (shown T, err error)) (got T, err error) {
	var none T
	if v.Asked == none || shown == v.First || v.ours(shown) {
		return v.Got, nil
	}
	if made, err := apply(v.Asked); err != nil || made == shown {
		return shown, err
	}
	_, err = apply(shown)
	return v.Got, err
}
