package driver

import (
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// waysSteps returns the step that gives a grant on record its ways; none if it has none.
func (d *Driver) waysSteps(grant ledger.Grant) []step {
	if !grant.HasCache() {
		return nil
	}
	return []step{{"give claim " + grant.FullName() + " its ways", func() error { return d.dividing.Give(grant, d.grants) }}}
}

// monitorSteps returns the step that has the kernel count a grant on record; none if that
// is not wanted. It never fails: a claim does without, and RepairCaches tries again.
func (d *Driver) monitorSteps(grant ledger.Grant) []step {
	if !d.dividing.Counts(grant) {
		return nil
	}
	return []step{{"monitor claim " + grant.FullName(), func() error {
		d.dividing.Count(grant)
		return nil
	}}}
}

// RepairCaches makes the groups of resctrl as they should be: after a start, when CPUs
// come and go, when resctrl was mounted again, and when another program wrote there. Call
// it about once a second.
func (d *Driver) RepairCaches() dividing.Report {
	if d.config.Caches == nil {
		return dividing.Report{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return dividing.Report{}
	}
	return d.repairCaches()
}

func (d *Driver) repairCaches() dividing.Report {
	report := d.dividing.Repair(d.grants, func(next ledger.List) error {
		return perform([]step{d.recordStep("record that counters start again", next)})
	})
	if report.Changed {
		d.useDevices()
		d.show()
	}
	d.note(&d.undone.measuring, report.Unmeasured)
	return report
}
