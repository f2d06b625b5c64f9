package cluster

import (
	"context"
	"time"
)

// wakePeriod bounds how long an emulated CPU sleeps that has an interrupt.
const wakePeriod = 5 * time.Second

// keepAwake wakes the CPUs of a node's machine now and then until ctx is done. On a busy
// host, the emulation of QEMU 10.0 loses wake-ups: a CPU sleeps on although it has an
// interrupt, and the booting kernel, or a program, waits for it for ever. QEMU looks for
// interrupts of all CPUs when it resumes them, which takes some milliseconds.
func (r *Cluster) keepAwake(ctx context.Context, n Node) {
	wake(ctx, wakePeriod, func(command string) error {
		_, err := r.Monitor(ctx, n, command)
		return err
	})
}

// wake sends the two commands to a monitor. If it cannot be known whether the machine is
// stopped, it is resumed, and again until that has succeeded.
func wake(ctx context.Context, period time.Duration, send func(command string) error) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for resumed := true; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if resumed {
			_ = send("stop") // if it fails, the machine may be stopped nevertheless
		}
		resumed = send("cont") == nil
	}
}
