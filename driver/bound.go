package driver

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// A claim may want another kernel driver for a function. What the function had
// comes on record before anything is done to it, and stays there until it has that
// again.

// bindSteps put the grant on record and bind the drivers that its functions do not
// have yet; none if they have. A claim that was allocated anew gives back first what
// it held.
func (d *Driver) bindSteps(grant Grant) []step {
	recorded, _ := d.grants.find(grant.UID)
	steps := d.restoreSteps(recorded, []Grant{grant})
	var binds []step
	for _, f := range grant.functions() {
		if f.Driver == "" {
			continue
		}
		if now, err := binding.Read(d.config.Machine, f.Address); err == nil && now.Driver == f.Driver {
			continue
		}
		binds = append(binds, step{fmt.Sprintf("bind driver %s for claim %s", f.Driver, grant.name()), func() error {
			return d.config.Drivers.Bind(f.Address, f.Driver)
		}})
	}
	if len(binds) > 0 {
		steps = append(append(steps, d.recordStep("record claim "+grant.name(), d.grants.with(grant))), binds...)
	}
	return steps
}

// restoreSteps have the functions of a grant as they were, but those that one of
// the other grants has.
func (d *Driver) restoreSteps(grant Grant, others []Grant) (steps []step) {
	for _, f := range grant.functions() {
		isKept := slices.ContainsFunc(others, func(other Grant) bool { return other.function(f.Address).Driver == f.Driver })
		if f.Driver != "" && !isKept {
			steps = append(steps, step{"restore the driver from before claim " + grant.name(), func() error { return d.restore(f) }})
		}
	}
	return steps
}

func (d *Driver) restore(f Function) error {
	if d.config.Drivers != nil {
		return d.config.Drivers.Restore(f.Address, f.Before)
	}
	now, err := binding.Read(d.config.Machine, f.Address)
	switch {
	case errors.Is(err, devnode.ErrGone):
		return nil
	case err == nil && now != f.Before:
		return fmt.Errorf("PCI function %s: this node binds none any more: set devices.bindDrivers in its NodeConfig", f.Address)
	}
	return err
}

// function is that of an address; zero if the grant has none.
func (g Grant) function(address string) Function {
	for _, f := range g.functions() {
		if f.Address == address {
			return f
		}
	}
	return Function{}
}

// wantDriver notes which driver the claim wants for a function, and what it had
// before; isBound says whether it has that driver already.
func (d *Driver) wantDriver(claimUID types.UID, driver string, f *Function) (isBound bool, err error) {
	now, err := binding.Read(d.config.Machine, f.Address)
	if err != nil {
		return false, err
	}
	recorded, _ := d.grants.find(claimUID)
	switch known := recorded.function(f.Address); {
	case known.Driver == driver:
		f.Driver, f.Before = known.Driver, known.Before
	case now.Driver != driver:
		f.Driver, f.Before = driver, now
	}
	return now.Driver == driver, nil
}

// restoreReleased has the functions of all grants that are to be forgotten as they
// were. One that cannot be stays with its claim, which nobody needs, so that
// nobody else gets it.
func (d *Driver) restoreReleased(next *recovered) {
	for _, grant := range d.grants {
		if _, kept := next.grants.find(grant.UID); kept {
			continue
		}
		left := grant.Grant
		left.Shares = nil
		var why error
		for _, share := range grant.Shares {
			one := grant.Grant
			one.Shares = []Share{share}
			if err := perform(d.restoreSteps(one, next.grants.grants())); err != nil {
				left.Shares, why = append(left.Shares, share), err
			}
		}
		if why != nil {
			next.waitFor(left, why)
		}
	}
}

// waitFor keeps the grant until its functions are as they were.
func (r *recovered) waitFor(grant Grant, problem error) {
	for i := range r.report {
		if finding := &r.report[i]; finding.Grant.UID == grant.UID {
			r.orphans[grant.UID] = finding.Why
			*finding = Finding{Outcome: Waiting, Grant: grant, Why: fmt.Sprintf("%s, but %v", finding.Why, problem)}
		}
	}
	r.grants = r.grants.with(grant)
}
