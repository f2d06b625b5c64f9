package driver

import (
	"errors"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// ErrNotEnough says that the zone does not have the CPUs that the scheduler allocated.
var ErrNotEnough = pick.ErrNotEnough

// choose sets the CPUs of a share. It takes them from the free ones.
func (p *planner) choose(share *ledger.ZoneShare, wish zoneWish, free cpuset.Set) error {
	if wish.cpus == 0 {
		return nil
	}
	choice, err := p.pick(wish, free.Intersection(wish.zone.CPUs))
	if errors.Is(err, pick.ErrNotEnough) {
		return p.namingBlocked(err, wish.zone)
	}
	if err != nil {
		return err
	}
	share.CPUs, share.Why = choice.CPUs, choice.Why.String()
	if wish.config.Cores == deviceclasses.CoresOneThreadPerCore {
		share.IdleCPUs = laterThreads(p.machine, share.CPUs)
		share.Why += fmt.Sprintf("; %d of the %d cpus kept idle", share.IdleCPUs.Size(), share.CPUs.Size())
	}
	return nil
}

// pick chooses from the free CPUs of the zone. It treats a zone of several NUMA nodes as
// one NUMA node, in which each of them is a die. Only placement distribute divides the
// CPUs among the NUMA nodes, if l3 is not require and if that is possible. It may not be
// possible, because the scheduler only checks that the whole zone has enough CPUs.
func (p *planner) pick(wish zoneWish, free cpuset.Set) (pick.Choice, error) {
	request := pickRequest(wish)
	if len(wish.zone.Nodes) == 1 {
		return p.picker.Pick(free, request)
	}
	if wish.config.Placement == deviceclasses.PlacementDistribute && wish.config.L3 != deviceclasses.L3Require {
		if choice, err := p.picker.Pick(free, request); err == nil {
			return choice, nil
		}
	}
	request.Zones = wish.zone.Nodes[:1]
	return pick.New(wish.zone.Joined(p.machine)).Pick(free, request)
}

// pickRequest translates the configuration of the claim for the picker. Whole cores are
// chosen for one-thread-per-core too: the scheduler counted all their threads, so the
// claim holds them.
func pickRequest(wish zoneWish) pick.Request {
	request := pick.Request{CPUs: wish.cpus, Zones: wish.zone.Nodes}
	if wish.config.Cores == deviceclasses.CoresThread {
		request.Cores = pick.SingleThreads
	}
	switch wish.config.L3 {
	case deviceclasses.L3Prefer:
		request.L3 = pick.PreferOneL3
	case deviceclasses.L3Require:
		request.L3 = pick.RequireOneL3
	}
	if wish.config.Placement == deviceclasses.PlacementSpread {
		request.Placement = pick.Spread // PlacementDistribute needs no case: the picker distributes over several zones
	}
	return request
}

// laterThreads returns the CPUs without the lowest one of each core.
func laterThreads(machine *numa.Machine, cpus cpuset.Set) (later cpuset.Set) {
	for i := range machine.Cores {
		mine := machine.Cores[i].CPUs.Intersection(cpus)
		if lowest, ok := mine.First(); ok {
			later = later.Union(mine.Difference(cpuset.New(lowest)))
		}
	}
	return later
}
