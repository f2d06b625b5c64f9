package tuning

import (
	"errors"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// demand returns what a grant asks of interrupts; asks is false if it asks nothing.
func (t *State) demand(grant ledger.Grant) (demand interrupts.Demand, asks bool, err error) {
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
	for _, function := range grant.Functions() {
		own, err := t.hosts().Interrupts.OfFunction(function.Address)
		if err != nil {
			return interrupts.Demand{}, false, err
		}
		demand.Own = append(demand.Own, own...)
	}
	return demand, asks, nil
}

func (t *State) demands(grants []ledger.Grant) (demands []interrupts.Demand, err error) {
	for _, grant := range grants {
		demand, asks, err := t.demand(grant)
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
func (t *State) moveInterrupts(recorded, grants []ledger.Grant) (refused []interrupts.Refusal, err error) {
	known, err := t.demands(recorded)
	if err != nil {
		return nil, err
	}
	demands, err := t.demands(grants)
	if err != nil || len(known) == 0 && len(demands) == 0 && t.first.Interrupts.IsZero() {
		return nil, err
	}
	host := t.hosts().Interrupts
	state, all, err := host.Read()
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		known = forgotten(all) // it was lost with the checkpoint
	}
	next, writes := interrupts.Plan(state, all, t.first.Interrupts, known, demands)
	if err := t.recordInterrupts(next); err != nil {
		return nil, err
	}
	if refused, err = host.Apply(writes); err != nil || len(demands) > 0 {
		return refused, err
	}
	t.due = append(t.due, interrupts.Due(writes, refused)...)
	return refused, t.recordInterrupts(interrupts.First{})
}

// quieten moves interrupts as the claims on record want them, and notes in this grant of one
// of them which the kernel does not move.
func (t *State) quieten(grant ledger.Grant, recorded []ledger.Grant) (ledger.Grant, error) {
	refused, err := t.moveInterrupts(recorded, recorded)
	if err != nil || len(refused) == 0 {
		return grant, err
	}
	state, _, err := t.hosts().Interrupts.Read()
	if err != nil {
		return grant, err
	}
	grant, _, err = t.withStaying(grant, state, refused)
	return grant, err
}

// withStaying returns the grant with the interrupts that its shares handle although the claim
// does not want that, and whether they are others than before.
func (t *State) withStaying(grant ledger.Grant, state numa.Interrupts, refused []interrupts.Refusal) (next ledger.Grant, changed bool, err error) {
	whole, asks, err := t.demand(grant)
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

// staying returns the grants whose CPUs handle other interrupts now, although the claims do not
// want that, than is on record.
func (t *State) staying(grants []ledger.Grant, refused []interrupts.Refusal) (changed []ledger.Grant, err error) {
	state, _, err := t.hosts().Interrupts.Read()
	if err != nil {
		return nil, err
	}
	for _, grant := range grants {
		next, differs, err := t.withStaying(grant, state, refused)
		if err != nil {
			return changed, err
		}
		if differs {
			changed = append(changed, next)
		}
	}
	return changed, nil
}

// Repair moves interrupts that have come to CPUs of claims, gives CPUs that were offline, and the
// uncore of their dies, what their claims want, and gives the others the default. Unless all is
// true, it reads interrupts only if there are other ones than at its last call. It returns the
// grants of which something else is true now.
func (t *State) Repair(grants []ledger.Grant, all bool) (changed []ledger.Grant, err error) {
	err = t.SettleDefaults(grants)
	if t.config != nil {
		err = errors.Join(err, t.retune(grants))
		var failed error
		changed, failed = t.lookAtInterrupts(grants, all)
		err = errors.Join(err, failed)
	}
	return changed, err
}

// retune gives CPUs that came online what their claims want. Another driver may have them
// now, which is an error.
func (t *State) retune(grants []ledger.Grant) error {
	online := t.online
	for _, grant := range grants {
		for _, share := range grant.Shares {
			zone := share.Zone()
			if zone == nil || zone.Performance == nil || !zone.Performance.Applied || !zone.CPUs.Overlaps(online) {
				continue
			}
			if _, err := t.config.Frequencies.Apply(zone.Performance.Changes); err != nil {
				return err
			}
		}
	}
	if err := t.retuneUncore(grants); err != nil {
		return err
	}
	t.online = cpuset.Set{}
	return nil
}

// lookAtInterrupts moves interrupts if there are other ones than at its last call, or if all
// is true.
func (t *State) lookAtInterrupts(grants []ledger.Grant, all bool) (changed []ledger.Grant, err error) {
	asks := func(grant ledger.Grant) bool {
		return slices.ContainsFunc(grant.Shares, func(s ledger.Share) bool {
			return s.Zone() != nil && s.Zone().Performance != nil && s.Zone().Performance.Asked.Interrupts != ""
		})
	}
	if !slices.ContainsFunc(grants, asks) {
		return nil, errors.Join(t.GiveInterruptsBack(grants), t.retryInterrupts(all))
	}
	numbers, err := t.config.Interrupts.Numbers()
	if err != nil {
		return nil, err
	}
	if !all && slices.Equal(numbers, t.seen) {
		return nil, nil
	}
	refused, err := t.moveInterrupts(grants, grants)
	if err != nil {
		return nil, err
	}
	t.seen = numbers
	return t.staying(grants, refused)
}

// GiveInterruptsBack gives interrupts their first CPUs back if no claim on record has a say:
// those that had are lost with the checkpoint.
func (t *State) GiveInterruptsBack(grants []ledger.Grant) error {
	if t.first.Interrupts.IsZero() {
		return nil
	}
	demands, err := t.demands(grants)
	if err != nil || len(demands) > 0 {
		return err
	}
	_, err = t.moveInterrupts(grants, grants)
	return err
}

// retryInterrupts gives interrupts their first CPUs back that had no room there when the last
// claim ended.
func (t *State) retryInterrupts(all bool) (err error) {
	if all && len(t.due) > 0 {
		t.due, err = t.config.Interrupts.Retry(t.due)
	}
	return err
}
