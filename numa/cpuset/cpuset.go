// Package cpuset provides a set of small ids: of logical CPUs, or of NUMA nodes where
// the kernel says "mems". It parses and prints the kernel's two text forms, the list
// (0-3,8) and the hexadecimal mask (f,0000000f), and does set arithmetic. It never
// reads a file and never decides which CPU is good for what.
package cpuset

import (
	"fmt"
	"iter"
	"math/bits"
)

// MaxCPUs bounds every id: 0 ≤ id < MaxCPUs. It is the largest NR_CPUS that x86 and Arm
// kernels can be built with.
const MaxCPUs = 8192

const wordBits = 64

// Set is a set of ids. It is a plain value: the zero value is the empty set, == compares,
// assignment copies.
type Set struct {
	words [MaxCPUs / wordBits]uint64 // id i is bit i%64 of word i/64
}

// New returns the set of the given ids. It panics on an id outside 0..MaxCPUs-1; use
// [Parse] or [ParseMask] for ids from outside the program.
func New(ids ...int) Set {
	var s Set
	for _, id := range ids {
		s.Insert(id)
	}
	return s
}

// Insert adds the id in place. It panics on an id outside 0..MaxCPUs-1.
func (s *Set) Insert(id int) {
	if id < 0 || id >= MaxCPUs {
		panic(fmt.Sprintf("cpuset: id %d is outside 0..%d", id, MaxCPUs-1))
	}
	s.words[id/wordBits] |= 1 << (id % wordBits)
}

// Remove removes the id in place, if the set contains it.
func (s *Set) Remove(id int) {
	if id >= 0 && id < MaxCPUs {
		s.words[id/wordBits] &^= 1 << (id % wordBits)
	}
}

// Words returns the words of the set, to read and write in place in code that visits
// many ids and must be fast. Id i is bit i%64 of word i/64.
func (s *Set) Words() *[MaxCPUs / wordBits]uint64 { return &s.words }

// Contains reports whether the set contains the id; it never contains an id that is out
// of bounds. Its receiver is a pointer because copying the set would take longer than
// the lookup.
func (s *Set) Contains(id int) bool {
	return id >= 0 && id < MaxCPUs && s.words[id/wordBits]&(1<<(id%wordBits)) != 0
}

// Size returns the number of ids in the set.
func (s Set) Size() int {
	size := 0
	for i := range s.words {
		size += bits.OnesCount64(s.words[i])
	}
	return size
}

// IsEmpty reports whether the set contains no id.
func (s Set) IsEmpty() bool { return s == Set{} }

// Union returns the ids that are in either set.
func (s Set) Union(other Set) Set {
	for i := range s.words {
		s.words[i] |= other.words[i]
	}
	return s
}

// Intersection returns the ids that are in both sets.
func (s Set) Intersection(other Set) Set {
	for i := range s.words {
		s.words[i] &= other.words[i]
	}
	return s
}

// Difference returns the ids of s that are not in other.
func (s Set) Difference(other Set) Set {
	for i := range s.words {
		s.words[i] &^= other.words[i]
	}
	return s
}

// IsSubsetOf reports whether every id of s is in other.
func (s Set) IsSubsetOf(other Set) bool {
	for i := range s.words {
		if s.words[i]&^other.words[i] != 0 {
			return false
		}
	}
	return true
}

// Overlaps reports whether the sets have an id in common.
func (s Set) Overlaps(other Set) bool {
	for i := range s.words {
		if s.words[i]&other.words[i] != 0 {
			return true
		}
	}
	return false
}

// All yields the ids in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.words {
			for word := s.words[i]; word != 0; word &= word - 1 {
				if !yield(i*wordBits + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// First returns the lowest id; ok is false when the set is empty.
func (s Set) First() (id int, ok bool) { return s.next(0) }

// next returns the lowest id that is not below from, from ≥ 0.
func (s *Set) next(from int) (id int, ok bool) {
	for i := from / wordBits; i < len(s.words); i++ {
		word := s.words[i]
		if i == from/wordBits {
			word &= ^uint64(0) << (from % wordBits)
		}
		if word != 0 {
			return i*wordBits + bits.TrailingZeros64(word), true
		}
	}
	return 0, false
}
