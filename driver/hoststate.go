package driver

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// A claim may want another kernel driver for a PCI function. The previous binding of the
// function is recorded before anything changes. It stays on record until it is restored.

// applySteps returns the steps that record the grant and then change the host as its
// shares need it; none if the host needs no change. If the claim was allocated again,
// the steps first undo the changes for its previous grant.
func (d *Driver) applySteps(grant ledger.Grant) []step {
	recorded, _ := d.grants.Find(grant.UID)
	steps := d.undoSteps(recorded, []ledger.Grant{grant})
	var changes []step
	for i := range grant.Shares {
		if f := grant.Shares[i].Function(); f != nil {
			changes = append(changes, d.bindSteps(f, grant.FullName())...)
		}
	}
	changes = append(changes, d.tuneSteps(grant)...)
	if len(changes) > 0 {
		steps = append(append(steps, d.recordStep("record claim "+grant.FullName(), d.grants.With(grant))), changes...)
	}
	return steps
}

// undoSteps returns the steps that restore the host as it was before the grant, except
// for what one of the other grants needs.
func (d *Driver) undoSteps(grant ledger.Grant, others []ledger.Grant) (steps []step) {
	for i := range grant.Shares {
		switch kind := grant.Shares[i].Kind.(type) {
		case *ledger.FunctionShare:
			steps = append(steps, d.unbindSteps(kind, grant.FullName(), others)...)
		case *ledger.ZoneShare:
			steps = append(steps, d.restoreSteps(kind, grant.FullName(), others)...)
		}
	}
	return steps
}

// bindSteps binds the kernel driver that the claim wants, unless it is bound already.
func (d *Driver) bindSteps(f *ledger.FunctionShare, claim string) []step {
	if f.Driver == "" {
		return nil
	}
	if now, err := binding.Read(d.config.Machine, f.Address); err == nil && now.Driver == f.Driver {
		return nil
	}
	return []step{{fmt.Sprintf("bind driver %s for claim %s", f.Driver, claim), func() error {
		return d.config.Drivers.Bind(f.Address, f.Driver)
	}}}
}

// unbindSteps restores the previous binding of the function, unless one of the other grants
// has the function with the same driver.
func (d *Driver) unbindSteps(f *ledger.FunctionShare, claim string, others []ledger.Grant) []step {
	kept := slices.ContainsFunc(others, func(other ledger.Grant) bool {
		theirs := other.Function(f.Address)
		return theirs != nil && theirs.Driver == f.Driver
	})
	if f.Driver == "" || kept {
		return nil
	}
	return []step{{"restore the driver that was bound before claim " + claim, func() error {
		if err := d.functions.restore(f); err != nil {
			return &NotRestoredError{err}
		}
		return nil
	}}}
}

// NotRestoredError says that a function does not have its previous kernel driver back, or
// that CPUs do not have what they had before a claim.
type NotRestoredError struct{ err error }

func (e *NotRestoredError) Error() string { return e.err.Error() }
func (e *NotRestoredError) Unwrap() error { return e.err }

// Abandon ends a claim that cannot be released yet, so that its pod can end: its containers
// still run, functions do not get their kernel drivers back, or CPUs are offline. What the
// claim holds stays on record, and Observe goes on trying. Until it succeeds, the functions
// have a taint, and no other claim gets functions and CPUs.
func (d *Driver) Abandon(claimUID types.UID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return ErrNotRecovered
	}
	grant, held := d.grants.Find(claimUID)
	if !held {
		return nil
	}
	grant.Unprepared = true
	ended := ledger.NewListed(grant)
	spec, err := d.planner().spec(ended)
	if err != nil {
		return err
	}
	steps := []step{d.recordStep("record that claim "+grant.FullName()+" was unprepared", d.grants.WithListed(ended)), d.removeSpecStep(claimUID)}
	if d.config.usedBy(grant) != "" { // the spec is the second record of what its containers have
		steps[1] = step{"write CDI spec of claim " + grant.FullName(), func() error { return d.specs.Ensure(string(claimUID), spec) }}
	}
	if err := perform(steps); err != nil {
		return err
	}
	d.orphans[claimUID] = isUnprepared
	d.show()
	return nil
}

// withheldFunctions returns why functions that no claim needs any more cannot be given yet,
// by device: they wait for their kernel drivers, or containers use them.
func (d *Driver) withheldFunctions() map[string]string {
	withheld := make(map[string]string)
	for uid := range d.orphans {
		grant, _ := d.grants.Find(uid)
		for _, share := range grant.Shares {
			switch f := share.Function(); {
			case f == nil:
			case f.Driver != "":
				withheld[share.Device] = deviceclasses.FaultNotRestored
			default:
				withheld[share.Device] = deviceclasses.FaultInUse
			}
		}
	}
	return withheld
}

// wantDriver notes which driver the claim wants for a function, and the binding before
// it, in this boot. It notes nothing if the function had that driver before the claim. isBound
// says whether that driver is bound now.
func (p *planner) wantDriver(claimUID types.UID, driver string, f *ledger.FunctionShare) (isBound bool, err error) {
	now, err := binding.Read(p.config.Machine, f.Address)
	if err != nil {
		return false, err
	}
	recorded, _ := p.grants.Find(claimUID)
	switch known := recorded.Function(f.Address); {
	case known != nil && known.Kind == f.Kind && known.Driver == driver && known.Before.Driver != driver:
		f.Driver, f.Before = known.Driver, known.Before
	case now.Driver != driver:
		f.Driver, f.Before = driver, now
	}
	return now.Driver == driver, nil
}

// undoReleased undoes the changes of the host for each grant that next drops. If that
// fails for a share, the claim keeps the share as an orphan, so that no other claim
// gets it.
func (d *Driver) undoReleased(next *recovered) {
	for _, grant := range d.grants {
		if _, kept := next.grants.Find(grant.UID); kept {
			continue
		}
		left := grant.Grant
		left.Shares = nil
		var why error
		for _, share := range grant.Shares {
			one := grant.Grant
			one.Shares = []ledger.Share{share}
			if err := perform(d.undoSteps(one, next.grants.Grants())); err != nil {
				left.Shares, why = append(left.Shares, share), err
			}
		}
		if why != nil {
			next.waitFor(left, why)
		}
	}
}

// waitFor keeps the grant until the host is restored.
func (r *recovered) waitFor(grant ledger.Grant, problem error) {
	for i := range r.report {
		if finding := &r.report[i]; finding.Grant.UID == grant.UID {
			r.orphans[grant.UID] = finding.Why
			*finding = Finding{Outcome: Waiting, Grant: grant, Why: fmt.Sprintf("%s, but %v", finding.Why, problem)}
		}
	}
	r.grants = r.grants.With(grant)
}
