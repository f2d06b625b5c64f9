package kubeletplugin

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
)

const (
	// faultLasts is how long a fault stands before it is told: the keeper
	// repairs most of them sooner.
	faultLasts = time.Second
	// hookLasts is the same for a cgroup that never was as it should be: its
	// hook may be at work, and its container does not start before that is done.
	hookLasts = 15 * time.Second
)

// partitionState is what became of a claim's partitions. The zero value is that
// of a claim whose wish the kernel honours, or of which no container runs.
type partitionState struct {
	fault      string // why the kernel does not honour it; it has lasted
	downgraded bool   // several pods use the claim, so there is no partition
}

// turn is a moment at which claims lost the exclusive use of their CPUs, or got
// it back.
type turn struct {
	claims []pin.ClaimRef
	lost   bool
	why    string        // the fault
	lasted time.Duration // of what is over, not more than that
}

// faultWatch compares what recorded cgroups have with what they had when last
// looked at.
type faultWatch struct {
	cgroups map[string]*watched
}

type watched struct {
	fault string
	since time.Time // when the fault was first seen
	told  bool
	sound bool // at some time there was no fault
}

// look is to be called about once a second.
func (w *faultWatch) look(now time.Time, live []pin.Live) (states map[types.UID]partitionState, turns []turn) {
	states = make(map[types.UID]partitionState)
	known := w.cgroups
	w.cgroups = make(map[string]*watched, len(live))
	for _, cgroup := range live {
		seen := known[cgroup.Cgroup]
		if seen == nil {
			seen = &watched{}
		}
		w.cgroups[cgroup.Cgroup] = seen
		if turn, turned := seen.look(now, cgroup.Fault); turned {
			turn.claims = cgroup.Claims
			turns = append(turns, turn)
		}
		for _, claim := range cgroup.Claims {
			state := states[types.UID(claim.UID)]
			state.downgraded = state.downgraded || cgroup.Downgraded
			if seen.told {
				state.fault = seen.fault
			}
			states[types.UID(claim.UID)] = state
		}
	}
	return states, turns
}

// look says whether the cgroup has turned. A fault that was there before
// anything else is not over when it goes: the hook was not yet done.
func (w *watched) look(now time.Time, fault string) (turn, bool) {
	if fault == "" {
		was := *w
		*w = watched{sound: true}
		return turn{why: was.fault, lasted: now.Sub(was.since)}, was.told || was.sound && was.fault != ""
	}
	if w.fault == "" {
		w.since = now
	}
	w.fault = fault
	limit := hookLasts
	if w.sound {
		limit = faultLasts
	}
	if w.told || now.Sub(w.since) < limit {
		return turn{}, false
	}
	w.told = true
	return turn{lost: true, why: fault}, true
}
