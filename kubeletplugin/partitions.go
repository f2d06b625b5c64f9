package kubeletplugin

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	// faultLasts is how long a fault must last before it is reported. The keeper
	// repairs most faults sooner.
	faultLasts = time.Second
	// hookLasts is the same for a cgroup that has had a fault since it was first seen.
	// Its hook may still be at work, and the container does not start before the hook
	// is done.
	hookLasts = 15 * time.Second
)

// partitionState is the state of a share's partition. The zero value means that the
// kernel grants what the share asks for, or that no container of the share runs.
type partitionState struct {
	downgraded bool              // several pods use the share, so there is no partition
	whys       map[string]string // what is known of each fault that the share has
}

// because returns reason and message of the condition that is false because of a fault.
func (s partitionState) because(fault string) (reason, message string) {
	row := deviceclasses.FaultOf(fault)
	return row.Reason, fmt.Sprintf(row.Message, s.whys[fault])
}

// cgroupState is the state of what a claim gives one cgroup.
type cgroupState struct {
	given      pin.Pinning
	ofAll      bool // it is the state of all shares of the claim, whatever is given
	downgraded bool
	fault, why string    // the fault, and what is known of it; empty until it has lasted
	since      time.Time // when it began at the earliest; only of toldFaults
}

// partitionStates is the state of each claim's cgroups. It is replaced, never changed.
type partitionStates map[types.UID][]cgroupState

// of returns the state of a share: that of the worst of its cgroups.
func (s partitionStates) of(claimUID types.UID, share ledger.Share) (state partitionState) {
	for _, cgroup := range s[claimUID] {
		if !cgroup.ofAll && !gives(cgroup.given, share) {
			continue
		}
		state.downgraded = state.downgraded || cgroup.downgraded
		switch {
		case cgroup.fault == "":
		case state.whys == nil: // a look without faults allocates nothing
			state.whys = map[string]string{cgroup.fault: cgroup.why}
		default:
			state.whys[cgroup.fault] = cmp.Or(state.whys[cgroup.fault], cgroup.why)
		}
	}
	return state
}

// gives reports whether what a claim gives a cgroup includes CPUs of the share, or NUMA
// nodes if one of the two has no CPUs. Containers may use different requests of a claim.
func gives(given pin.Pinning, share ledger.Share) bool {
	if cpus := share.CPUs(); !cpus.IsEmpty() && !given.CPUs.IsEmpty() {
		return given.CPUs.Overlaps(cpus)
	}
	return given.Mems.Overlaps(share.Binds())
}

// turn says that claims lost the exclusive use of their CPUs, or got it back.
type turn struct {
	claims []pin.Claim
	lost   bool
	why    string        // the fault
	lasted time.Duration // how long the fault was seen; only if it has ended
}

// faultWatch compares the recorded cgroups with how they were at the last look.
type faultWatch struct {
	cgroups map[string]*watched
	told    partitionStates // by the daemon of before; nil after the first look
}

type watched struct {
	fault string
	since time.Time // when the fault was first seen
	told  bool
	sound bool // at some time there was no fault
}

// look is to be called about once a second.
func (w *faultWatch) look(now time.Time, live []pin.Live) (states partitionStates, turns []turn) {
	states = make(partitionStates)
	known := w.cgroups
	w.cgroups = make(map[string]*watched, len(live))
	for _, cgroup := range live {
		seen := known[cgroup.Cgroup]
		if seen == nil {
			seen = &watched{}
			if since, told := w.told.toldOf(cgroup); told && cgroup.Fault != "" {
				seen = &watched{since: since, fault: cgroup.Fault, told: true}
			}
		}
		w.cgroups[cgroup.Cgroup] = seen
		if turn, turned := seen.look(now, cgroup.Fault); turned {
			turn.claims = cgroup.Claims
			turns = append(turns, turn)
		}
		for _, claim := range cgroup.Claims {
			state := cgroupState{given: claim.Pinning, downgraded: cgroup.Downgraded}
			if seen.told {
				state.fault, state.why = deviceclasses.FaultPartitionInvalid, seen.fault
			}
			states[types.UID(claim.UID)] = append(states[types.UID(claim.UID)], state)
		}
	}
	w.told = nil
	return states, turns
}

// look reports whether the cgroup has turned. A cgroup may have a fault from the start
// because its hook is not done. If such a fault ends before it was reported, that is no
// turn.
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

// blockedLasts is how long a CPU must be blocked before it no longer counts. The
// partition of a claim that has ended lingers for a moment, and that must not change what
// the node publishes.
const blockedLasts = 30 * time.Second

// blockedWatch knows since when CPUs are blocked.
type blockedWatch struct {
	since map[int]time.Time
}

// look takes the CPUs that are blocked now. It returns those that have been blocked for
// blockedLasts. At the first look, these are all: the daemon of before may have reported them.
func (w *blockedWatch) look(now time.Time, blocked cpuset.Set) (lasting cpuset.Set) {
	known, first := w.since, w.since == nil
	w.since = make(map[int]time.Time, blocked.Size())
	for cpu := range blocked.All() {
		began, before := known[cpu]
		if !before {
			began = now
			if first {
				began = now.Add(-blockedLasts)
			}
		}
		w.since[cpu] = began
		if now.Sub(began) >= blockedLasts {
			lasting = lasting.Union(cpuset.New(cpu))
		}
	}
	return lasting
}
