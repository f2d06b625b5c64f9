package tuning

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// planUncore decides how fast the dies of these CPUs have to be.
func (t *State) planUncore(cpus cpuset.Set, frequency string) ([]uncore.Demand, error) {
	if frequency == "" {
		return nil, nil
	}
	dies, err := t.hosts().Uncore.Read()
	if err != nil {
		return nil, err
	}
	demands, err := uncore.Resolve(dies, t.machine.Cores, cpus, frequency)
	return demands, ofUncore(err)
}

// ofUncore names the field in an error.
func ofUncore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("minUncoreFrequency: %w", err)
}

// uncoreDemands returns what grants ask of dies.
func uncoreDemands(grants []ledger.Grant) (demands []uncore.Demand) {
	for _, grant := range grants {
		for _, share := range grant.Shares {
			if zone := share.Zone(); zone != nil && zone.Performance != nil {
				demands = append(demands, zone.Performance.Uncore...)
			}
		}
	}
	return demands
}

// settleUncore gives dies the lowest frequency that these grants ask for, and those without
// a demand what they had first. That is on record before the first write. In the shares of the
// grant tuned, if it is not nil, it notes what the kernel made of it: they must not be on
// record. It reads nothing if no claim asks, and none did.
func (t *State) settleUncore(grants []ledger.Grant, tuned *ledger.Grant) error {
	demands := uncoreDemands(grants)
	if len(demands) == 0 && len(t.first.Uncore) == 0 {
		return nil
	}
	host := t.hosts().Uncore
	dies, err := host.Read()
	if err != nil {
		return err
	}
	held, err := host.Probe(t.first.Uncore, dies)
	if err != nil {
		return err
	}
	next, writes := uncore.Plan(dies, held, demands)
	if err := t.recordUncore(next); err != nil {
		return err
	}
	if err := host.Apply(writes); err != nil {
		return err
	}
	if dies, err = host.Read(); err != nil {
		return err
	}
	if err := t.recordUncore(uncore.Settled(dies, next, demands)); err != nil || tuned == nil {
		return err
	}
	for i := range tuned.Shares {
		zone := tuned.Shares[i].Zone()
		if zone == nil || zone.Performance == nil {
			continue
		}
		if zone.Performance.Uncore, err = uncore.Got(dies, zone.Performance.Uncore); err != nil {
			return ofUncore(err)
		}
	}
	return nil
}

// retuneUncore gives dies whose CPUs came online, also while the daemon was away, what claims
// want of them, or what they had before the claims that have ended meanwhile.
func (t *State) retuneUncore(grants []ledger.Grant) error {
	if t.uncoreDue {
		if err := t.settleUncore(grants, nil); err != nil {
			return err
		}
	}
	t.uncoreDue = false
	return nil
}
