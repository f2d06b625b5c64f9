package driver

import (
	"errors"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
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

// moveInterrupts moves interrupts as these grants want them, and returns those that the
// kernel does not move. What was there first is on record before the first write. If the last
// claim ends while no CPU has room for an interrupt, its write is due later.
func (d *Driver) moveInterrupts(grants []Grant) (refused []interrupts.Refusal, err error) {
	known, err := d.demands(d.grants.grants())
	if err != nil {
		return nil, err
	}
	demands, err := d.demands(grants)
	if err != nil || len(known) == 0 && len(demands) == 0 && d.first.Interrupts.IsZero() {
		return nil, err
	}
	host := d.tuning().Interrupts
	state, all, err := host.Read()
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		known = forgotten(all) // it was lost with the checkpoint
	}
	next, writes := interrupts.Plan(state, all, d.first.Interrupts, known, demands)
	if err := d.recordInterrupts(next); err != nil {
		return nil, err
	}
	if refused, err = host.Apply(writes); err != nil || len(demands) > 0 {
		return refused, err
	}
	d.due = append(d.due, interrupts.Due(writes, refused)...)
	return refused, d.recordInterrupts(interrupts.First{})
}

// quieten moves interrupts as the claims on record want them, and notes in this grant of one
// of them which the kernel does not move.
func (d *Driver) quieten(grant Grant) (Grant, error) {
	refused, err := d.moveInterrupts(d.grants.grants())
	if err != nil || len(refused) == 0 {
		return grant, err
	}
	state, _, err := d.tuning().Interrupts.Read()
	if err != nil {
		return grant, err
	}
	grant, _, err = d.withStaying(grant, state, refused)
	return grant, err
}

// withStaying returns the grant with the interrupts that its shares handle although the claim
// does not want that, and whether they are others than before.
func (d *Driver) withStaying(grant Grant, state numa.Interrupts, refused []interrupts.Refusal) (next Grant, changed bool, err error) {
	whole, asks, err := d.demand(grant)
	if err != nil || !asks {
		return grant, false, err
	}
	next = grant
	next.Shares = slices.Clone(grant.Shares)
	for i := range next.Shares {
		zone := next.Shares[i].Zone()
		if zone == nil || zone.Performance == nil || zone.Performance.Asked.Interrupts == "" {
			continue
		}
		demand := interrupts.Demand{CPUs: zone.CPUs}
		if zone.Performance.Asked.Interrupts == deviceclasses.InterruptsOwn {
			demand.Own = whole.Own
		}
		staying := interrupts.Staying(state, refused, demand)
		if slices.Equal(staying, zone.Performance.Staying) {
			continue
		}
		tuned, performance := *zone, *zone.Performance
		performance.Staying, tuned.Performance = staying, &performance
		next.Shares[i].Kind, changed = &tuned, true
	}
	return next, changed, nil
}

// recordStaying records for each claim which interrupts its CPUs handle now although it does
// not want that. It writes only what has changed.
func (d *Driver) recordStaying(refused []interrupts.Refusal) error {
	state, _, err := d.tuning().Interrupts.Read()
	if err != nil {
		return err
	}
	for _, grant := range d.grants.grants() {
		if _, ended := d.orphans[grant.UID]; ended {
			continue // it has no CDI spec any more
		}
		next, changed, err := d.withStaying(grant, state, refused)
		if err != nil {
			return err
		}
		if !changed {
			continue
		}
		change, err := d.rendered(change{Grant: next, grants: []*listedGrant{listed(next)}})
		if err != nil {
			return err
		}
		if err := perform(d.recordSteps(change)); err != nil {
			return err
		}
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
	if d.config.Tuning != nil {
		err = errors.Join(err, d.retune(), d.lookAtInterrupts(all))
	}
	d.note(&d.undone.tuning, errText(err))
	return err
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
		return errors.Join(d.giveInterruptsBack(), d.retryInterrupts(all))
	}
	numbers, err := d.config.Tuning.Interrupts.Numbers()
	if err != nil {
		return err
	}
	if !all && slices.Equal(numbers, d.seen) {
		return nil
	}
	refused, err := d.moveInterrupts(grants)
	if err != nil {
		return err
	}
	d.seen = numbers
	return d.recordStaying(refused)
}

// giveInterruptsBack gives interrupts their first CPUs back if no claim on record has a say:
// those that had are lost with the checkpoint.
func (d *Driver) giveInterruptsBack() error {
	if d.first.Interrupts.IsZero() {
		return nil
	}
	grants := d.grants.grants()
	demands, err := d.demands(grants)
	if err != nil || len(demands) > 0 {
		return err
	}
	_, err = d.moveInterrupts(grants)
	return err
}

// retryInterrupts gives interrupts their first CPUs back that had no room there when the last
// claim ended.
func (d *Driver) retryInterrupts(all bool) (err error) {
	if all && len(d.due) > 0 {
		d.due, err = d.config.Tuning.Interrupts.Retry(d.due)
	}
	return err
}
