// Package trace compares where programs place claims. A trace is a fixed list of claims
// that begin and end, so all programs have the same work. The package counts what they
// make of it. It does not measure time.
package trace

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Event is that a claim begins or ends.
type Event struct {
	Claim int
	CPUs  int // of a claim that begins; 0: it ends
}

// load is how many of the CPUs claims would have if all of them were placed.
const load = 0.85

// sizes are the numbers of CPUs that claims ask for, a repeated one more often. A larger
// one than fits into half a NUMA node is halved until it fits.
var sizes = []int{1, 1, 2, 2, 2, 3, 4, 4, 4, 4, 5, 6, 8, 8, 8, 8, 12, 16, 16, 24, 32}

// New returns a trace of so many claims for the machine, always the same one.
func New(m numa.Machine, claims int) (events []Event) {
	r := rand.New(rand.NewPCG(20, 26))
	largest := m.Online.Size()
	for _, zone := range m.Zones {
		if size := zone.CPUs.Size(); size > 0 {
			largest = min(largest, size/2)
		}
	}
	type held struct{ claim, cpus int }
	var running []held
	busy := 0
	for claim := range claims {
		n := sizes[r.IntN(len(sizes))]
		for n > largest {
			n /= 2
		}
		for float64(busy+n) > load*float64(m.Online.Size()) {
			i := r.IntN(len(running))
			events = append(events, Event{Claim: running[i].claim})
			busy -= running[i].cpus
			running = slices.Delete(running, i, i+1)
		}
		events = append(events, Event{claim, n})
		running, busy = append(running, held{claim, n}), busy+n
	}
	return events
}

// ErrNoRoom is the answer of a program that does not place a claim.
var ErrNoRoom = errors.New("no room")

// Placer is a program that places claims on one machine.
type Placer interface {
	Place(claim, cpus int) (cpuset.Set, error) // an error wraps ErrNoRoom, or ends the comparison
	Release(claim int, cpus cpuset.Set) error
}

// Score is what a program made of a trace.
type Score struct {
	Placed       int // claims
	FailedFree   int // claims that were not placed while enough CPUs were free
	Failed       int // claims that were not placed
	Zones        int // NUMA nodes, summed over the placed claims, as are the next two
	L3s          int
	SplitCores   int // cores with CPUs of the claim, and others
	PlacedCPUs   int
	WrongPlacing int // placed claims with a CPU that is not free, or with another number of CPUs
}

// Run has the program place the claims of the trace. The reserved CPUs count as held.
func Run(m numa.Machine, reserved cpuset.Set, events []Event, p Placer) (s Score, err error) {
	free := m.Online.Difference(reserved)
	held := map[int]cpuset.Set{}
	for _, e := range events {
		if e.CPUs == 0 {
			cpus, ok := held[e.Claim]
			if !ok {
				continue
			}
			if err := p.Release(e.Claim, cpus); err != nil {
				return s, err
			}
			free = free.Union(cpus)
			delete(held, e.Claim)
			continue
		}
		cpus, err := p.Place(e.Claim, e.CPUs)
		if errors.Is(err, ErrNoRoom) {
			s.Failed++
			if e.CPUs <= free.Size() {
				s.FailedFree++
			}
			continue
		}
		if err != nil {
			return s, err
		}
		if cpus.Size() != e.CPUs || !cpus.IsSubsetOf(free) {
			s.WrongPlacing++
		}
		free, held[e.Claim] = free.Difference(cpus), cpus
		s.count(m, cpus)
	}
	return s, nil
}

func (s *Score) count(m numa.Machine, cpus cpuset.Set) {
	s.Placed++
	s.PlacedCPUs += cpus.Size()
	for i := range m.Zones {
		if m.Zones[i].CPUs.Overlaps(cpus) {
			s.Zones++
		}
	}
	for i := range m.L3s {
		if m.L3s[i].CPUs.Overlaps(cpus) {
			s.L3s++
		}
	}
	for i := range m.Cores {
		if c := m.Cores[i].CPUs; c.Overlaps(cpus) && !c.IsSubsetOf(cpus) {
			s.SplitCores++
		}
	}
}

// per is the average of a placed claim.
func (s Score) per(n int) float64 { return float64(n) / float64(max(s.Placed, 1)) }

// Averages returns the NUMA nodes, L3s and split cores of a placed claim.
func (s Score) Averages() [3]float64 {
	return [3]float64{s.per(s.Zones), s.per(s.L3s), s.per(s.SplitCores)}
}

// Compare returns a negative number if s is better than other, in this order: failures
// with enough CPUs free, NUMA nodes, L3s, split cores. Averages that differ by less than
// a thousandth are the same.
func (s Score) Compare(other Score) int {
	if s.FailedFree != other.FailedFree {
		return s.FailedFree - other.FailedFree
	}
	mine, theirs := s.Averages(), other.Averages()
	for i := range mine {
		if d := mine[i] - theirs[i]; d < -0.001 {
			return -1
		} else if d > 0.001 {
			return 1
		}
	}
	return 0
}
