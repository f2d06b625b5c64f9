package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Recover decides what of the grants on record still counts, records that and
// makes the CDI specs say the same. It has to succeed before the kubelet may ask
// for anything, so before the plugin registers; after an error it may be
// repeated.
//
// Claims is what the API server has by the namespace and name of each grant: nil
// if it has none. Of a claim that is not in the map nothing is known; it keeps
// what it has. Held is what the live cgroup partitions hold; an ancestor that
// only hands CPUs down is none.
func (d *Driver) Recover(claims map[types.UID]*resourceapi.ResourceClaim, held []Held) (Report, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := d.planRecovery(claims, held)
	d.undoReleased(&next)
	if err := perform(d.recoverySteps(next.grants)); err != nil {
		return nil, err
	}
	d.ready, d.loaded = true, onRecord{}
	d.orphans, d.blocked = next.orphans, next.blocked
	return next.report, nil
}

// Observe is told what the live partitions hold now: grants that waited for one
// are released when it is gone, CPUs are blocked and unblocked. The report has
// what is still waiting or blocked, and what was released. If a claim was
// unprepared since the partitions were read, its CPUs may be blocked until the
// next call.
func (d *Driver) Observe(held []Held) (Report, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return nil, ErrNotRecovered
	}
	next := d.planObservation(held)
	d.undoReleased(&next)
	if err := perform(d.observeSteps(next)); err != nil {
		return nil, err
	}
	d.orphans, d.blocked = next.orphans, next.blocked
	return next.report, nil
}

// planObservation changes nothing.
func (d *Driver) planObservation(held []Held) recovered {
	next := recovered{grants: d.grants, orphans: maps.Clone(d.orphans)}
	next.settle(held)
	next.block(held)
	return next
}

// observeSteps release what nobody needs and nobody holds any more.
func (d *Driver) observeSteps(next recovered) (steps []step) {
	for _, grant := range d.grants {
		if _, kept := next.grants.find(grant.UID); !kept {
			steps = append(steps, d.removeSpecStep(grant.UID))
		}
	}
	if len(steps) > 0 {
		steps = append(steps, d.recordStep("record release of claims", next.grants))
	}
	return steps
}

// recovered is what recovery decides.
type recovered struct {
	grants  grantList
	orphans map[types.UID]string // see Driver
	blocked []Held
	report  Report
}

// planRecovery changes nothing.
func (d *Driver) planRecovery(claims map[types.UID]*resourceapi.ResourceClaim, held []Held) recovered {
	next := recovered{orphans: make(map[types.UID]string)}
	entries := make(map[types.UID]entry)
	for _, e := range d.loaded.entries {
		if d.loaded.bootID != d.config.BootID && !e.fromSpec && !d.honours(e.Grant) {
			// No container outlives a boot, so it is forgotten: the kubelet
			// prepares the claim again.
			next.note(Released, e.Grant, "the machine has lost some of it since the last boot")
			continue
		}
		if claim, known := claims[e.UID]; known {
			var unneeded string
			if e.Grant, unneeded = d.compare(e.Grant, claim); unneeded != "" {
				next.orphans[e.UID] = unneeded
			}
		}
		entries[e.UID] = e
		next.grants = next.grants.with(e.Grant)
	}
	next.settle(held)
	next.separate()
	for _, grant := range next.grants.grants() {
		switch _, waiting := next.orphans[grant.UID]; {
		case waiting: // reported by settle
		case entries[grant.UID].fromSpec:
			next.note(Restored, grant, "its CDI spec has it, the checkpoint does not")
		default:
			next.note(Kept, grant, "")
		}
	}
	slices.SortStableFunc(next.report, func(a, b Finding) int { return byAge(a.Grant, b.Grant) })
	next.block(held)
	return next
}

// compare says of a grant why nobody needs it any more, if so, and completes it
// from the allocation.
func (d *Driver) compare(grant Grant, claim *resourceapi.ResourceClaim) (completed Grant, unneeded string) {
	switch {
	case claim == nil:
		return grant, "the claim is gone"
	case claim.UID != grant.UID:
		return grant, fmt.Sprintf("the claim was replaced by another with uid %s", claim.UID)
	case !d.allocatedHere(claim):
		return grant, "the claim is not allocated on this node any more"
	}
	wishes, err := d.wishes(claim)
	if err != nil {
		return grant, "" // Prepare says so, and to whom it matters
	}
	if !grant.fulfils(wishes) {
		return grant, "the claim was allocated anew"
	}
	return grant.completed(wishes), ""
}

func (d *Driver) allocatedHere(claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourceapi.DeviceRequestAllocationResult) bool {
			return result.Driver == Name && result.Pool == d.config.NodeName
		})
}

// settle releases the orphans of which no partition holds a CPU.
func (r *recovered) settle(held []Held) {
	for _, uid := range slices.Sorted(maps.Keys(r.orphans)) {
		grant, known := r.grants.find(uid)
		i := slices.IndexFunc(held, func(h Held) bool { return h.CPUs.Overlaps(grant.cpus()) })
		switch {
		case known && i >= 0:
			r.report = append(r.report, Finding{Waiting, grant, held[i], fmt.Sprintf("%s, but %s", r.orphans[uid], held[i])})
			continue
		case known:
			r.note(Released, grant, r.orphans[uid])
		}
		r.grants = r.grants.without(uid)
		delete(r.orphans, uid)
	}
}

// separate refuses each grant that has a CPU or a PCI function of an older one. A grant that
// nobody needs is older than none.
func (r *recovered) separate() {
	var kept []Grant
	for _, grant := range r.byRight() {
		i := slices.IndexFunc(kept, func(older Grant) bool { return grant.conflict(older) != "" })
		if i < 0 {
			kept = append(kept, grant)
			continue
		}
		if why, orphan := r.orphans[grant.UID]; orphan {
			r.report = slices.DeleteFunc(r.report, func(f Finding) bool { return f.Grant.UID == grant.UID }) // it waited
			r.note(Released, grant, why)
		} else {
			r.note(Refused, grant, fmt.Sprintf("%s of the older claim %s", grant.conflict(kept[i]), kept[i].name()))
		}
		r.grants = r.grants.without(grant.UID)
		delete(r.orphans, grant.UID)
	}
}

// byRight lists the grants that are needed, then the others, the oldest first.
func (r *recovered) byRight() []Grant {
	rank := func(grant Grant) int {
		if _, orphan := r.orphans[grant.UID]; orphan {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(r.grants.grants()), func(a, b Grant) int {
		if by := rank(a) - rank(b); by != 0 {
			return by
		}
		return byAge(a, b)
	})
}

// block finds what partitions hold beyond the grants.
func (r *recovered) block(held []Held) {
	var granted cpuset.Set
	for _, grant := range r.grants.grants() {
		granted = granted.Union(grant.cpus())
	}
	for _, h := range held {
		if h.CPUs = h.CPUs.Difference(granted); h.CPUs.IsEmpty() {
			continue
		}
		r.blocked = append(r.blocked, h)
		r.report = append(r.report, Finding{Outcome: Blocked, Held: h, Why: fmt.Sprintf("cgroup %s holds them, and no claim has them", h.Cgroup)})
	}
}

func (r *recovered) note(outcome Outcome, grant Grant, why string) {
	r.report = append(r.report, Finding{Outcome: outcome, Grant: grant, Why: why})
}

// recoverySteps make the files say what was decided. Specs go first: what is
// left of one is read as a grant.
func (d *Driver) recoverySteps(grants grantList) []step {
	steps := []step{
		{"remove CDI specs of no claim", func() error {
			return d.specs.RemoveExcept(func(uid string) bool {
				_, kept := grants.find(types.UID(uid))
				return kept
			})
		}},
		d.recordOnce(grants),
		{"remove half-written checkpoint", func() error {
			if err := d.state.Remove(CheckpointName + ".new"); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}},
	}
	for _, grant := range grants {
		steps = append(steps, step{"write CDI spec of claim " + grant.name(), func() error {
			spec, err := d.spec(grant)
			if err != nil {
				return err
			}
			return d.specs.Ensure(string(grant.UID), spec)
		}})
	}
	return steps
}

// recordOnce leaves a checkpoint alone that says so already, so that a node with
// a full or read-only disk can start.
func (d *Driver) recordOnce(grants grantList) step {
	record := d.recordStep("record boot "+d.config.BootID, grants)
	write := record.run
	record.run = func() error {
		text, err := d.recordText(grants)
		if err != nil {
			return err
		}
		if current, err := d.state.ReadFile(CheckpointName); err != nil || !bytes.Equal(current, text) {
			return write()
		}
		d.grants = grants
		d.show()
		return nil
	}
	return record
}

// namingBlocked adds to the error of a zone without enough CPUs who holds those
// that are missing.
func (d *Driver) namingBlocked(err error, of zones.Zone) error {
	for _, held := range d.blocked {
		if cpus := held.CPUs.Intersection(of.CPUs); !cpus.IsEmpty() {
			err = fmt.Errorf("%w; cpus %s are held by cgroup %s, which is of no claim", err, cpus, held.Cgroup)
		}
	}
	return err
}
