package driver

import (
	"errors"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// demand returns what a grant asks of interrupts; asks is false if it asks nothing.
func (d *Driver) demand(grant Grant) (demand interrupts.Demand, asks bool, err error) {
	for _, share := range grant.Shares {
		zone := share.Zone()
		if zone == nil || zone.Performance == nil || zone.Performance.Asked.Interrupts == "" {
			continue
		}
		demand.CPUs, asks = demand.CPUs.Union(zone.CPUs), true
		if zone.Performance.Asked.Interrupts == deviceclasses.InterruptsOwn {
			demand.Handle = demand.Handle.Union(zone.RunCPUs())
		}
	}
	if demand.Handle.IsEmpty() {
		return demand, asks, nil
	}
	for _, function := range grant.functions() {
		own, err := d.tuning().Interrupts.OfFunction(function.Address)
		if err != nil {
			return interrupts.Demand{}, false, err
		}
		demand.Own = append(demand.Own, own...)
	}
	return demand, asks, nil
}

func (d *Driver) demands(grants []Grant) (demands []interrupts.Demand, err error) {
	for _, grant := range grants {
		demand, asks, err := d.demand(grant)
		if err != nil {
			return nil, err
		}
		if asks {
			demands = append(demands, demand)
		}
	}
	return demands, nil
}

// moveInterrupts moves interrupts as these grants want them. What was there first is on
// record before the first write. In the shares of the grant tuned, if it is not nil, it notes
// the interrupts that the kernel does not move.
func (d *Driver) moveInterrupts(grants []Grant, tuned *Grant) error {
	known, err := d.demands(d.grants.grants())
	if err != nil {
		return err
	}
	demands, err := d.demands(grants)
	if err != nil || len(known) == 0 && len(demands) == 0 && d.first.IsZero() {
		return err
	}
	host := d.tuning().Interrupts
	state, all, err := host.Read()
	if err != nil {
		return err
	}
	next, writes := interrupts.Plan(state, all, d.first, known, demands)
	if !next.Equal(d.first) {
		before := d.first
		d.first = next
		if err := d.recordStep("record interrupts", d.grants).run(); err != nil {
			d.first = before
			return err
		}
	}
	refused, err := host.Apply(writes)
	if err != nil {
		return err
	}
	if len(demands) == 0 {
		d.first = interrupts.First{} // on record with the release of the claim
	}
	if tuned == nil || len(refused) == 0 {
		return nil
	}
	return d.noteStaying(tuned, refused)
}

// noteStaying notes in the shares of a grant which interrupts the kernel does not move. The
// shares must not be on record.
func (d *Driver) noteStaying(grant *Grant, refused []interrupts.Refusal) error {
	state, _, err := d.tuning().Interrupts.Read()
	if err != nil {
		return err
	}
	whole, _, err := d.demand(*grant)
	if err != nil {
		return err
	}
	for i := range grant.Shares {
		zone := grant.Shares[i].Zone()
		if zone == nil || zone.Performance == nil || zone.Performance.Asked.Interrupts == "" {
			continue
		}
		demand := interrupts.Demand{CPUs: zone.CPUs}
		if zone.Performance.Asked.Interrupts == deviceclasses.InterruptsOwn {
			demand.Own = whole.Own
		}
		zone.Performance.Staying = interrupts.Staying(state, refused, demand)
	}
	return nil
}

// RepairPerformance moves interrupts that have come to CPUs of claims, gives CPUs that were
// offline, and the uncore of their dies, what their claims want, and gives the others the
// default of the NodeConfig. Call it every few seconds. Unless all is true, it reads interrupts
// only if there are other ones than at its last call. Without such claims and without a default
// it does nothing.
func (d *Driver) RepairPerformance(all bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return nil
	}
	err := d.settleDefaults()
	if d.config.Tuning == nil {
		return err
	}
	return errors.Join(err, d.retune(), d.lookAtInterrupts(all))
}

// retune gives CPUs that came online what their claims want. Another driver may have them
// now, which is an error.
func (d *Driver) retune() error {
	online := d.online
	for _, grant := range d.grants.grants() {
		for _, share := range grant.Shares {
			zone := share.Zone()
			if zone == nil || zone.Performance == nil || !zone.Performance.Applied || !zone.CPUs.Overlaps(online) {
				continue
			}
			if _, err := d.config.Tuning.Frequencies.Apply(zone.Performance.Changes); err != nil {
				return err
			}
		}
	}
	if err := d.retuneUncore(); err != nil {
		return err
	}
	d.online = cpuset.Set{}
	return nil
}

// lookAtInterrupts moves interrupts if there are other ones than at its last call, or if all
// is true.
func (d *Driver) lookAtInterrupts(all bool) error {
	grants := d.grants.grants()
	asks := func(grant Grant) bool {
		return slices.ContainsFunc(grant.Shares, func(s Share) bool {
			return s.Zone() != nil && s.Zone().Performance != nil && s.Zone().Performance.Asked.Interrupts != ""
		})
	}
	if !slices.ContainsFunc(grants, asks) {
		return nil
	}
	numbers, err := d.config.Tuning.Interrupts.Numbers()
	if err != nil {
		return err
	}
	if !all && slices.Equal(numbers, d.seen) {
		return nil
	}
	if err := d.moveInterrupts(grants, nil); err != nil {
		return err
	}
	d.seen = numbers
	return nil
}
