// Package ways chooses which ways of one cache each claim gets, and in which order the
// masks are written so that exclusive ones never overlap. All of it is pure: the same
// cache, claims and masks always give the same answer. The package neither reads nor
// writes a file, and does not record what it gave.
//
// [Divide] makes the pools of a cache, [Offer] says what other tools leave of one,
// [Area.Arrange] gives the claims of a pool their masks, and [Order] puts the writes
// of all exclusive claims of the cache in order.
package ways

import (
	"errors"
	"math/bits"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// ErrNotEnough means that the claims of a pool need more ways than the pool offers.
var ErrNotEnough = errors.New("not enough ways")

// ErrNoOrder means that no order of writes was found: masks would overlap on the way,
// and there is no room to put one aside.
var ErrNoOrder = errors.New("no order of writes keeps the masks apart")

// Names of the pools, as in configurations and attributes.
const (
	OS         = "os"
	Reserved   = "reserved"
	Groups     = "groups"
	Infra      = "infra"
	Guaranteed = "guaranteed"
	BestEffort = "besteffort"
	Shared     = "shared"
)

// Mask is a set of ways: bit n stands for way n. The kernel calls it a capacity bitmask;
// Documentation/filesystems/resctrl.rst. The zero Mask has no ways, and no group can
// have it: here it stands for a group that has no claim.
type Mask uint64

// String returns the mask as schemata has it: hexadecimal, without 0x.
func (m Mask) String() string {
	return strconv.FormatUint(uint64(m), 16)
}

// Ways returns how many ways the mask has, 0 to 64.
func (m Mask) Ways() int {
	return bits.OnesCount64(uint64(m))
}

// Contiguous reports whether the mask is one run of ways. The zero Mask is none.
func (m Mask) Contiguous() bool {
	return m != 0 && m == run(m.first(), m.Ways())
}

// within reports whether all ways of m are in the other mask.
func (m Mask) within(other Mask) bool {
	return m&^other == 0
}

// first returns the lowest way, or 64 if there is none.
func (m Mask) first() int {
	return bits.TrailingZeros64(uint64(m))
}

// end returns the way after the highest one, or 0 if there is none.
func (m Mask) end() int {
	return bits.Len64(uint64(m))
}

// lowest returns the n lowest ways of the mask, or all if it has fewer.
func (m Mask) lowest(n int) Mask {
	rest := m
	for ; n > 0; n-- {
		rest &= rest - 1
	}
	return m &^ rest
}

// runs returns the runs of the mask, the lowest first.
func (m Mask) runs() (list []Mask) {
	for m != 0 {
		first := m.first()
		r := run(first, bits.TrailingZeros64(^uint64(m>>first)))
		list, m = append(list, r), m&^r
	}
	return list
}

// run returns n ways, first being the lowest.
func run(first, n int) Mask {
	return (1<<n - 1) << first
}

// minWays returns how many ways a mask of the cache must have. Some kernels say 0, but
// they refuse an empty mask too.
func minWays(cache *numa.CacheAllocation) int {
	return max(1, cache.MinBits)
}
