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

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Recover decides which grants on record still count, records that, and makes the CDI
// specs say the same. It must succeed before the plugin registers, because the kubelet
// may call the driver from then on. After an error it may be repeated.
//
// Claims says what the API server has under the namespace and name of each grant: nil
// if it has no such claim. Nothing is known about a claim that is not in the map, so it
// keeps what it has. Held is what the live cgroup partitions hold. A cgroup that only
// passes CPUs down to its descendants is not one of them.
func (d *Driver) Recover(claims map[types.UID]*resourceapi.ResourceClaim, held []Held) (Report, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := perform([]step{d.beginStep()}); err != nil {
		return nil, err
	}
	next := d.planner().planRecovery(claims, held)
	d.undoReleased(&next)
	if err := perform(d.recoverySteps(next.grants)); err != nil {
		return nil, err
	}
	if _, err := d.rereadFunctions(""); err != nil {
		return nil, err
	}
	d.ready, d.loaded = true, ledger.Record{}
	d.orphans, d.blocked = next.orphans, next.blocked
	if d.config.Caches != nil {
		d.repairCaches() // before containers start; RepairCaches reports what fails
	}
	_ = d.tuning.SettleDefaults(d.grants.Grants())     // before claims take CPUs; RepairPerformance reports what fails
	_ = d.tuning.GiveInterruptsBack(d.grants.Grants()) // so does it here
	d.show()
	return next.report, nil
}

// Observe takes what the live partitions hold now. It releases grants that waited, once
// their CPUs and functions are free, and it blocks and unblocks CPUs. The report has
// what is still waiting or blocked, and what was released. If a claim was unprepared
// after the partitions were read, its CPUs may be blocked until the next call.
func (d *Driver) Observe(held []Held) (Report, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return nil, ErrNotRecovered
	}
	next := d.planner().planObservation(held)
	d.undoReleased(&next)
	if err := perform(d.observeSteps(next)); err != nil {
		return nil, err
	}
	d.orphans, d.blocked = next.orphans, next.blocked
	d.show()
	return next.report, nil
}

// blockTaken blocks the CPUs of partitions, as Observe does, if one of them has CPUs that
// this grant would have and that are not on record for its claim.
func (d *Driver) blockTaken(next ledger.Grant) (taken bool, err error) {
	recorded, _ := d.grants.Find(next.UID)
	chosen := next.CPUs().Difference(recorded.CPUs())
	if d.config.Held == nil || chosen.IsEmpty() {
		return false, nil
	}
	held, err := d.config.Held(chosen)
	if err != nil {
		return false, err
	}
	seen := recovered{grants: d.grants}
	seen.block(held)
	if !slices.ContainsFunc(seen.blocked, func(h Held) bool { return h.CPUs.Overlaps(chosen) }) {
		return false, nil
	}
	d.blocked = seen.blocked
	d.show()
	return true, nil
}

// Prepares returns how often Prepare was called. Reconsider takes it.
func (d *Driver) Prepares() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.prepares
}

// Reconsider compares grants with the claims that the API server has, as Recover does.
// Observe releases those that no claim needs any more, once their containers have ended.
// Since is what Prepares returned before the API server was asked:
// what it said of a claim that was prepared after that is old.
func (d *Driver) Reconsider(claims map[types.UID]*resourceapi.ResourceClaim, since uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for uid, claim := range claims {
		grant, held := d.grants.Find(uid)
		if !held || !d.ready || d.lastPrepare[uid] > since {
			continue
		}
		if unneeded := d.planner().compare(grant, claim); unneeded != "" {
			d.orphans[uid] = unneeded
		}
	}
	maps.DeleteFunc(d.lastPrepare, func(uid types.UID, _ uint64) bool {
		_, held := d.grants.Find(uid)
		return !held
	})
}

// planObservation changes nothing.
func (p *planner) planObservation(held []Held) recovered {
	next := recovered{grants: p.grants, orphans: maps.Clone(p.orphans), usedBy: p.config.asking()}
	next.settle(held)
	next.block(held)
	return next
}

// observeSteps returns the steps that release the grants that next drops.
func (d *Driver) observeSteps(next recovered) (steps []step) {
	for _, grant := range d.grants {
		if _, kept := next.grants.Find(grant.UID); !kept {
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
	grants  ledger.List
	orphans map[types.UID]string // see Driver
	blocked []Held
	report  Report
	usedBy  func(ledger.Grant) string // see Driver
}

// planRecovery changes nothing.
func (p *planner) planRecovery(claims map[types.UID]*resourceapi.ResourceClaim, held []Held) recovered {
	next := recovered{orphans: make(map[types.UID]string), usedBy: p.config.asking()}
	entries := make(map[types.UID]ledger.Entry)
	for _, e := range p.loaded.Entries {
		if e.Noted != nil && next.usedBy(*e.Noted) != "" {
			e = ledger.Entry{Grant: *e.Noted, FromSpec: true} // a claim in use is never planned again
		}
		if p.loaded.BootID != p.config.BootID && !e.FromSpec && !p.honours(e.Grant) {
			// No container survives a reboot, so the grant can be dropped. The kubelet
			// prepares the claim again.
			next.note(Released, e.Grant, "the machine has lost some of it since the last boot")
			continue
		}
		if p.loaded.BootID != p.config.BootID && !e.FromSpec {
			e.Pods, e.QuotaPods = nil, nil // their containers have ended with that boot
		}
		if e.Unprepared {
			next.orphans[e.UID] = isUnprepared
		} else if claim, known := claims[e.UID]; known {
			if unneeded := p.compare(e.Grant, claim); unneeded != "" {
				next.orphans[e.UID] = unneeded
			}
		}
		entries[e.UID] = e
		next.grants = next.grants.With(e.Grant)
	}
	next.settle(held)
	next.separate()
	for _, grant := range next.grants.Grants() {
		switch _, waiting := next.orphans[grant.UID]; {
		case waiting: // reported by settle
		case entries[grant.UID].FromSpec:
			next.note(Restored, grant, "its CDI spec has it, the checkpoint does not")
		default:
			next.note(Kept, grant, "")
		}
	}
	slices.SortStableFunc(next.report, func(a, b Finding) int { return ledger.ByAge(a.Grant, b.Grant) })
	next.block(held)
	return next
}

// compare says why no claim needs the grant any more; "" if one does.
func (p *planner) compare(grant ledger.Grant, claim *resourceapi.ResourceClaim) (unneeded string) {
	switch {
	case claim == nil:
		return "the claim is gone"
	case claim.UID != grant.UID:
		return fmt.Sprintf("the claim was replaced by another with uid %s", claim.UID)
	case !AllocatedOn(claim, p.config.NodeName):
		return "the claim is not allocated on this node any more"
	}
	wishes, err := p.wishes(claim)
	if err == nil && !fulfils(grant, wishes) {
		return "the claim was allocated again"
	}
	return "" // Prepare returns the error to the kubelet
}

// AllocatedOn reports whether the claim is allocated on the node. Then all its pods are there.
func AllocatedOn(claim *resourceapi.ResourceClaim, nodeName string) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourceapi.DeviceRequestAllocationResult) bool {
			return result.Driver == Name && result.Pool == nodeName
		})
}

// isUnprepared is why no claim needs a grant that has outlived Unprepare.
const isUnprepared = "the claim was unprepared"

// settle releases the orphans that no container uses and whose CPUs no partition holds.
func (r *recovered) settle(held []Held) {
	for _, uid := range slices.Sorted(maps.Keys(r.orphans)) {
		grant, known := r.grants.Find(uid)
		i := slices.IndexFunc(held, func(h Held) bool { return h.CPUs.Overlaps(grant.CPUs()) })
		if known && i >= 0 {
			r.report = append(r.report, Finding{Waiting, grant, held[i], fmt.Sprintf("%s, but %s", r.orphans[uid], held[i])})
			continue
		}
		if known {
			if use := r.usedBy(grant); use != "" {
				r.note(Waiting, grant, fmt.Sprintf("%s, but %s", r.orphans[uid], use))
				continue
			}
			r.note(Released, grant, r.orphans[uid])
		}
		r.grants = r.grants.Without(uid)
		delete(r.orphans, uid)
	}
}

// separate refuses each grant that has a CPU or a PCI function of one that byRight lists before.
func (r *recovered) separate() {
	var kept []ledger.Grant
	for _, grant := range r.byRight() {
		i := slices.IndexFunc(kept, func(older ledger.Grant) bool { return grant.Conflict(older) != "" })
		if i < 0 {
			kept = append(kept, grant)
			continue
		}
		if why, orphan := r.orphans[grant.UID]; orphan {
			r.report = slices.DeleteFunc(r.report, func(f Finding) bool { return f.Grant.UID == grant.UID }) // settle reported it as waiting
			r.note(Released, grant, why)
		} else {
			r.note(Refused, grant, fmt.Sprintf("%s of claim %s", grant.Conflict(kept[i]), kept[i].FullName()))
		}
		r.grants = r.grants.Without(grant.UID)
		delete(r.orphans, grant.UID)
	}
}

// byRight lists the grants that claims need and that containers use, then those that claims
// need, and then the others. In each part, older grants come first.
func (r *recovered) byRight() []ledger.Grant {
	rank := func(grant ledger.Grant) int {
		switch _, orphan := r.orphans[grant.UID]; {
		case orphan:
			return 2
		case r.usedBy(grant) == "":
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(r.grants.Grants()), func(a, b ledger.Grant) int {
		if by := rank(a) - rank(b); by != 0 {
			return by
		}
		return ledger.ByAge(a, b)
	})
}

// block finds the CPUs that partitions hold and no grant has.
func (r *recovered) block(held []Held) {
	var granted cpuset.Set
	for _, grant := range r.grants.Grants() {
		granted = granted.Union(grant.CPUs())
	}
	for _, h := range held {
		if h.CPUs = h.CPUs.Difference(granted); h.CPUs.IsEmpty() {
			continue
		}
		r.blocked = append(r.blocked, h)
		r.report = append(r.report, Finding{Outcome: Blocked, Held: h, Why: fmt.Sprintf("cgroup %s holds them, and no claim has them", h.Cgroup)})
	}
}

func (r *recovered) note(outcome Outcome, grant ledger.Grant, why string) {
	r.report = append(r.report, Finding{Outcome: outcome, Grant: grant, Why: why})
}

// beginStep puts what the node had first on record, before anything else of this boot. It
// does not rewrite a file that says so: see recordOnce.
func (d *Driver) beginStep() step {
	return step{"record what the node had first", func() error {
		text := d.tuning.FirstText()
		if current, err := d.records.dir.ReadFile(tuning.FirstName); err != nil || !bytes.Equal(current, text) {
			return d.records.replace(tuning.FirstName, text)
		}
		return nil
	}}
}

// recoverySteps returns the steps that make the files say what was decided. Specs are
// removed first, because a spec that is left would be read as a grant.
func (d *Driver) recoverySteps(grants ledger.List) []step {
	steps := []step{
		d.beginStep(),
		{"remove CDI specs without a claim", func() error {
			return d.specs.RemoveExcept(func(uid string) bool {
				_, kept := grants.Find(types.UID(uid))
				return kept
			})
		}},
		d.recordOnce(grants),
		{"remove half-written files", func() error {
			for _, name := range []string{ledger.CheckpointName, tuning.FirstName} {
				if err := d.records.dir.Remove(durable.Unfinished(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		}},
	}
	for _, grant := range grants {
		steps = append(steps, step{"write CDI spec of claim " + grant.FullName(), func() error {
			spec, err := d.planner().spec(grant)
			if err != nil {
				return err
			}
			return d.specs.Ensure(string(grant.UID), spec)
		}})
	}
	return steps
}

// recordOnce does not rewrite a checkpoint of this boot that already has these grants, so
// that a daemon which starts again needs no room on a full disk.
func (d *Driver) recordOnce(grants ledger.List) step {
	record := d.recordStep("record boot "+d.config.BootID, grants)
	write := record.run
	record.run = func() error {
		text, err := d.records.checkpoint(d.config.BootID, grants)
		if err != nil {
			return err
		}
		if current, err := d.records.dir.ReadFile(ledger.CheckpointName); err != nil || !bytes.Equal(current, text) {
			return write()
		}
		d.grants = grants
		d.show()
		return nil
	}
	return record
}

// namingBlocked extends the error of a zone that has too few CPUs. It names the cgroups
// that hold blocked CPUs of the zone, and the claims that have ended but still hold some.
func (p *planner) namingBlocked(err error, of zones.Zone) error {
	for _, held := range p.blocked {
		if cpus := held.CPUs.Intersection(of.CPUs); !cpus.IsEmpty() {
			err = fmt.Errorf("%w; cpus %s are held by cgroup %s, which belongs to no claim", err, cpus, held.Cgroup)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(p.orphans)) {
		grant, _ := p.grants.Find(uid)
		if cpus := grant.CPUs().Intersection(of.CPUs); !cpus.IsEmpty() {
			err = fmt.Errorf("%w; cpus %s are held by claim %s until its containers have ended: %s", err, cpus, grant.FullName(), p.orphans[uid])
		}
	}
	return err
}
