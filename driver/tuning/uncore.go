package tuning

import (
	"errors"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// dies is the uncore of dies: each has the highest demand of all claims.
type dies struct{ *State }

// plan decides how fast the dies of these CPUs have to be.
func (t dies) plan(cpus cpuset.Set, planned *ledger.Performance) error {
	frequency := planned.Asked.MinUncoreFrequency
	if frequency == "" {
		return nil
	}
	found, err := t.config.Uncore.Read()
	if err != nil {
		return err
	}
	if planned.Uncore, err = uncore.Resolve(found, t.machine.Cores, cpus, frequency); err != nil {
		err = fmt.Errorf("minUncoreFrequency: %w", err)
	}
	return err
}

func (t dies) apply(grant ledger.Grant, recorded []ledger.Grant) (ledger.Grant, error) {
	found, err := t.settle(recorded)
	if err != nil {
		return grant, err
	}
	for zone := range Retune(&grant) {
		if zone.Performance.Uncore, err = uncore.Got(found, zone.Performance.Uncore); err != nil {
			return grant, fmt.Errorf("minUncoreFrequency: %w", err)
		}
	}
	return grant, nil
}

func (t dies) restore(z *ledger.ZoneShare, _, others []ledger.Grant) error {
	if len(z.Performance.Uncore) == 0 {
		return nil
	}
	_, err := t.settle(others)
	return err
}

// repair gives dies whose CPUs came online, also while the daemon was away, what claims want of
// them, or what they had before the claims that have ended meanwhile.
func (t dies) repair(grants []ledger.Grant, _ bool) ([]ledger.Grant, error) {
	if !t.tunes || !t.uncoreDue {
		return nil, nil
	}
	_, err := t.settle(grants)
	t.uncoreDue = err != nil
	return nil, err
}

func (t dies) assume(grants []ledger.Grant) error {
	demands := uncoreDemands(grants)
	if len(demands) == 0 {
		return nil
	}
	found, err := t.config.Uncore.Read()
	t.first.Uncore = uncore.Began(found, demands)
	return err
}

func (t dies) giveBack() error {
	if _, err := t.settle(nil); err != nil {
		return err
	}
	var errs []error
	for _, left := range t.first.Uncore {
		errs = append(errs, fmt.Errorf("uncore of %s: %w", left.ID, errDieOffline))
	}
	return errors.Join(errs...)
}

var errDieOffline = errors.New("its CPUs are offline")

// uncoreDemands returns what grants ask of dies.
func uncoreDemands(grants []ledger.Grant) (demands []uncore.Demand) {
	for _, zone := range Tuned(grants...) {
		demands = append(demands, zone.Performance.Uncore...)
	}
	return demands
}

// settle gives dies the lowest frequency that these grants ask for, and those without a demand
// what they had first. That is on record before the first write. It returns the dies as they are
// then. It reads nothing if no claim asks, and none did.
func (t dies) settle(grants []ledger.Grant) (found []numa.UncoreDie, err error) {
	demands := uncoreDemands(grants)
	if len(demands) == 0 && len(t.first.Uncore) == 0 {
		return nil, nil
	}
	host := t.config.Uncore
	if found, err = host.Read(); err != nil {
		return nil, err
	}
	held, err := host.Probe(t.first.Uncore, found)
	if err != nil {
		return nil, err
	}
	next, writes := uncore.Plan(found, held, demands)
	if err := t.recordFirst(func(first *First) { first.Uncore = next }); err != nil {
		return nil, err
	}
	if err := host.Apply(writes); err != nil {
		return nil, err
	}
	if found, err = host.Read(); err != nil {
		return nil, err
	}
	return found, t.recordFirst(func(first *First) { first.Uncore = uncore.Settled(found, next, demands) })
}
