// Package measure is what benchmarks share: the load of a node that they are run with,
// and the CPU time that they report. It decides nothing about what is measured.
package measure

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// CPUUnit is the unit of the CPU time of an operation.
const CPUUnit = "cpu-ns/op"

// CPUTime is the time for which the process has run. Other programs on the machine do not
// make it longer, as they do with the time on the clock.
func CPUTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// Loop runs the operation until the benchmark is over, and reports its CPU time.
func Loop(b *testing.B, operation func() error) {
	b.Helper()
	b.ReportAllocs()
	began := CPUTime()
	for b.Loop() {
		if err := operation(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((CPUTime()-began).Nanoseconds())/float64(b.N), CPUUnit)
}

// Load is how large a node is, and how busy.
type Load struct {
	CPUs   int // of two sockets, each with one NUMA node
	Claims int // that hold CPUs already, in turn on each NUMA node
	Each   int // CPUs of each of these claims
}

// Claim is the number of CPUs of the claim that is measured.
const Claim = 8

// Sizes are the numbers of CPUs that growth is measured over.
func Sizes() []int { return []int{64, 256, 512, 1024} }

// Counts are the numbers of claims that growth is measured over.
func Counts() []int { return []int{1, 32, 256} }

// Loads returns each size with each number of claims that has room on it.
func Loads() (list []Load) {
	for _, cpus := range Sizes() {
		for _, claims := range Counts() {
			each := min(Claim, (cpus-2*Claim)/claims)
			if each > 1 {
				each -= each % 2 // whole cores
			}
			if each > 0 {
				list = append(list, Load{cpus, claims, each})
			}
		}
	}
	return list
}

func (l Load) String() string { return fmt.Sprintf("cpus=%d/claims=%d", l.CPUs, l.Claims) }
