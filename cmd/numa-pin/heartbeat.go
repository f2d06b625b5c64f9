package main

import (
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

// stuckAfter is how long the keeper may take for one round. It waits up to a minute for the
// host's lock.
const stuckAfter = 2 * time.Minute

// heart tells the daemon that the keeper works, and ends the keeper if it does not.
type heart struct {
	dir    *os.Root    // that the daemon reads; nil if there is none
	stuck  *time.Timer // ends if the heart stops
	beaten time.Time   // when the file was last written
	told   pin.Counts  // that it has
}

// newHeart takes the directory of the daemon's; "" for none.
func newHeart(dir string, limit time.Duration) (h *heart, err error) {
	h = &heart{stuck: time.NewTimer(limit)}
	if dir != "" {
		h.dir, err = os.OpenRoot(dir)
	}
	return h, err
}

func (h *heart) close() {
	h.stuck.Stop()
	if h.dir != nil {
		h.dir.Close()
	}
}

// beat is to be called in each round of the keeper. It writes the file if that is old, or
// if the keeper has done something.
func (h *heart) beat(now time.Time, counts pin.Counts) error {
	h.stuck.Reset(stuckAfter)
	same := counts.Releases == h.told.Releases && counts.Unrepaired == h.told.Unrepaired && maps.Equal(counts.Repairs, h.told.Repairs)
	if h.dir == nil || same && now.Sub(h.beaten).Abs() < keeperfile.BeatPeriod {
		return nil
	}
	beat := keeperfile.Beat{At: now.UTC(), Releases: counts.Releases, Unrepaired: counts.Unrepaired, Repairs: make(map[string]uint64)}
	for cause, count := range counts.Repairs {
		beat.Repairs[string(cause)] = count
	}
	if err := pin.Replace(h.dir, keeperfile.BeatName, beat.Encode()); err != nil {
		return fmt.Errorf("write heartbeat: %w", err)
	}
	h.beaten, h.told = now, counts
	return nil
}
