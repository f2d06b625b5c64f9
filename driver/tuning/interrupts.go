package tuning

import (
	"errors"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// affinities is which CPUs handle interrupts: all claims together decide it.
type affinities struct{ *State }

func (t affinities) plan(cpuset.Set, *ledger.Performance) error { return nil } // it depends on all claims

// apply notes which interrupts the kernel does not move.
func (t affinities) apply(grant ledger.Grant, recorded []ledger.Grant) (ledger.Grant, error) {
	refused, err := t.move(recorded, recorded)
	if err != nil || len(refused) == 0 {
		return grant, err
	}
	changed, err := t.staying([]ledger.Grant{grant}, refused)
	if len(changed) > 0 {
		grant = changed[0]
	}
	return grant, err
}

func (t affinities) restore(z *ledger.ZoneShare, recorded, others []ledger.Grant) error {
	if z.Performance.Asked.Interrupts == "" {
		return nil
	}
	_, err := t.move(recorded, others)
	return err
}

// repair moves interrupts if there are other ones than at its last call, or if all is true.
func (t affinities) repair(grants []ledger.Grant, all bool) (changed []ledger.Grant, err error) {
	if !t.tunes {
		return nil, nil
	}
	if !asksInterrupts(grants) {
		if err = t.GiveInterruptsBack(grants); all && len(t.due) > 0 { // had no room when the last claim ended
			var failed error
			t.due, failed = t.config.Interrupts.Retry(t.due)
			err = errors.Join(err, failed)
		}
		return nil, err
	}
	numbers, err := t.config.Interrupts.Numbers()
	if err != nil || !all && slices.Equal(numbers, t.seen) {
		return nil, err
	}
	refused, err := t.move(grants, grants)
	if err != nil {
		return nil, err
	}
	t.seen = numbers
	return t.staying(grants, refused)
}

func (t affinities) assume(grants []ledger.Grant) (err error) {
	if asksInterrupts(grants) {
		t.first.Interrupts.Default, err = t.config.Interrupts.Began()
	}
	return err
}

func (t affinities) giveBack() error { return t.GiveInterruptsBack(nil) }

// GiveInterruptsBack gives interrupts their first CPUs back if no claim on record has a say:
// those that had are lost with the checkpoint.
func (t *State) GiveInterruptsBack(grants []ledger.Grant) error {
	if asksInterrupts(grants) {
		return nil
	}
	_, err := affinities{t}.move(nil, nil)
	return err
}

func asksInterrupts(grants []ledger.Grant) bool {
	for _, zone := range Tuned(grants...) {
		if zone.Performance.Asked.Interrupts != "" {
			return true
		}
	}
	return false
}

// demand returns what a grant asks of interrupts; asks is false if it asks nothing.
func (t *State) demand(grant ledger.Grant) (demand interrupts.Demand, asks bool, err error) {
	for _, zone := range Tuned(grant) {
		if zone.Performance.Asked.Interrupts == "" {
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
		own, err := t.config.Interrupts.OfFunction(function.Address)
		if err != nil {
			return interrupts.Demand{}, false, err
		}
		demand.Own = append(demand.Own, own...)
	}
	return demand, asks, nil
}

func (t affinities) demands(grants []ledger.Grant) (demands []interrupts.Demand, err error) {
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

// move moves interrupts as these grants want them, and returns those that the kernel does not
// move. What was there first is on record before the first write. If the last claim ends while no
// CPU has room for an interrupt, its write is due later.
func (t affinities) move(recorded, grants []ledger.Grant) (refused []interrupts.Refusal, err error) {
	known, err := t.demands(recorded)
	if err != nil {
		return nil, err
	}
	demands, err := t.demands(grants)
	if err != nil || len(known) == 0 && len(demands) == 0 && t.first.Interrupts.IsZero() {
		return nil, err
	}
	host := t.config.Interrupts
	state, machine, err := host.Read()
	if err != nil {
		return nil, err
	}
	if len(known) == 0 { // it was lost with the checkpoint: any CPUs may have been a claim's
		known = []interrupts.Demand{{CPUs: machine.Possible}}
	}
	next, writes := interrupts.Plan(state, machine, t.first.Interrupts, known, demands)
	if err := t.recordFirst(func(first *First) { first.Interrupts = next }); err != nil {
		return nil, err
	}
	if refused, err = host.Apply(writes); err != nil || len(demands) > 0 {
		return refused, err
	}
	t.due = append(t.due, interrupts.Due(writes, refused)...)
	return refused, t.recordFirst(func(first *First) { first.Interrupts = interrupts.First{} })
}

// staying returns the grants whose CPUs handle other interrupts now, although the claims do not
// want that, than is on record.
func (t affinities) staying(grants []ledger.Grant, refused []interrupts.Refusal) (changed []ledger.Grant, err error) {
	state, _, err := t.config.Interrupts.Read()
	if err != nil {
		return nil, err
	}
	for _, grant := range grants {
		whole, _, err := t.demand(grant)
		if err != nil {
			return changed, err
		}
		next, differs := grant, false
		for zone := range Retune(&next) {
			performance, demand := zone.Performance, interrupts.Demand{CPUs: zone.CPUs}
			switch performance.Asked.Interrupts {
			case "":
				continue
			case deviceclasses.InterruptsOwn:
				demand.Own = whole.Own
			}
			before := performance.Staying
			performance.Staying = interrupts.Staying(state, refused, demand)
			differs = differs || !slices.Equal(before, performance.Staying)
		}
		if differs {
			changed = append(changed, next)
		}
	}
	return changed, nil
}
