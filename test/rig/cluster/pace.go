package cluster

import (
	"context"
	"crypto/sha256"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// work is what the speed of the host is measured by: every CPU hashes so many bytes.
// workTime is how long that takes on the machine where the rig's limits were chosen, 2
// cores of an AMD EPYC: pace 1.
const (
	workBytes = 128 << 20
	workTime  = 120 * time.Millisecond
)

// patiently is a limit that was chosen at pace 1, at the present pace.
func (r *Cluster) patiently(limit time.Duration) time.Duration { return times(limit, r.pace()) }

// pace is how much longer this host takes now, also for emulators that are held back. It is 1
// or more.
func (r *Cluster) pace() float64 {
	pace := max(1, float64(measure())/float64(workTime))
	if r.Speed > 0 {
		pace *= 100 / float64(r.Speed)
	}
	return pace
}

func times(limit time.Duration, pace float64) time.Duration {
	return time.Duration(pace * float64(limit))
}

// measure is how long the host takes for the work.
func measure() time.Duration {
	begin := time.Now()
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			block, hash := make([]byte, 1<<20), sha256.New()
			for range workBytes >> 20 {
				_, _ = hash.Write(block) // never fails
			}
		})
	}
	workers.Wait()
	return time.Since(begin)
}

// holdPeriod is short compared with everything that a guest waits for.
const holdPeriod = 20 * time.Millisecond

// hold stops a process again and again, so that it has a part of the time, in percent,
// until the context is done: it then is as on a machine that is as much slower. A quota
// of a cgroup would do the same, where there is a cgroup to set it on.
func hold(ctx context.Context, process *os.Process, percent int) {
	if percent <= 0 || percent >= 100 {
		return
	}
	running := holdPeriod * time.Duration(percent) / 100
	defer func() { _ = process.Signal(syscall.SIGCONT) }() // one that is stopped does not end
	for {
		for _, part := range []struct {
			signal os.Signal
			length time.Duration
		}{{syscall.SIGCONT, running}, {syscall.SIGSTOP, holdPeriod - running}} {
			if process.Signal(part.signal) != nil {
				return // it has ended
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(part.length):
			}
		}
	}
}
