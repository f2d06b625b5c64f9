// Package histogram counts how long things take. It has no clock and no format of its own:
// its callers measure, and package metrics shows the figures.
package histogram

import (
	"sync/atomic"
	"time"
)

// bounds are the upper bounds of the ranges that durations are counted in. They cover a
// quick write to a disk as well as the 45 s that the kubelet waits for a claim.
var bounds = [...]time.Duration{
	500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond,
	5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute,
}

// Durations counts durations. It may be used concurrently. Its zero value has counted
// nothing.
type Durations struct {
	counts [len(bounds) + 1]atomic.Uint64 // by range; the last has no upper bound
	sum    atomic.Int64                   // in nanoseconds
}

// Add counts one duration.
func (d *Durations) Add(took time.Duration) {
	i := 0
	for i < len(bounds) && took > bounds[i] {
		i++
	}
	d.counts[i].Add(1)
	d.sum.Add(int64(took))
}

// Distribution is what a Durations has counted.
type Distribution struct {
	Count uint64
	Sum   time.Duration
	// Within says how many durations were not longer than the bound. Bounds are ascending,
	// and so are their counts: each is ≤ the next, and the last is ≤ Count.
	Within []Bound
}

// Bound is one upper bound of a Distribution.
type Bound struct {
	Bound time.Duration
	Count uint64
}

// Read returns what was counted so far. A duration that is added meanwhile may be in the
// sum and not yet in the count.
func (d *Durations) Read() Distribution {
	read := Distribution{Within: make([]Bound, len(bounds))}
	for i := range d.counts {
		read.Count += d.counts[i].Load()
		if i < len(bounds) {
			read.Within[i] = Bound{bounds[i], read.Count}
		}
	}
	read.Sum = d.Sum()
	return read
}

// Sum returns the sum of all durations so far.
func (d *Durations) Sum() time.Duration { return time.Duration(d.sum.Load()) }

// Saved is what a Durations has counted, for a file.
type Saved struct {
	Counts []uint64      `json:"counts"` // by range of this version
	Sum    time.Duration `json:"sum"`    // in nanoseconds
}

// Save returns what was counted so far.
func (d *Durations) Save() Saved {
	saved := Saved{make([]uint64, len(d.counts)), d.Sum()}
	for i := range d.counts {
		saved.Counts[i] = d.counts[i].Load()
	}
	return saved
}

// Load makes the Durations go on from what was saved. Counts of another version, with
// other ranges, are dropped, and the Durations starts from nothing.
func (d *Durations) Load(saved Saved) {
	if len(saved.Counts) != len(d.counts) {
		saved = Saved{Counts: make([]uint64, len(d.counts))}
	}
	for i, count := range saved.Counts {
		d.counts[i].Store(count)
	}
	d.sum.Store(int64(saved.Sum))
}
