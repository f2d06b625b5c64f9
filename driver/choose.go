package driver

import (
	"errors"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// choose sets the CPUs of a share, from those that are free.
func (d *Driver) choose(share *ZoneShare, wish zoneWish, free cpuset.Set) error {
	if wish.cpus == 0 {
		return nil
	}
	choice, err := d.pick(wish, free.Intersection(wish.zone.CPUs))
	if errors.Is(err, pick.ErrNotEnough) {
		return d.namingBlocked(err, wish.zone)
	}
	if err != nil {
		return err
	}
	share.CPUs, share.Why = choice.CPUs, choice.Why.String()
	if wish.config.Cores == deviceclasses.CoresOneThreadPerCore {
		share.IdleCPUs = laterThreads(d.machine, share.CPUs)
		share.Why += fmt.Sprintf("; %d of the %d cpus kept idle", share.IdleCPUs.Size(), share.CPUs.Size())
	}
	return nil
}

// pick chooses from the free CPUs of the zone. Those of several NUMA nodes are
// chosen as of one, in which each is a die, unless they are to be distributed and
// can be: the scheduler saw to no more than that the zone has enough.
func (d *Driver) pick(wish zoneWish, free cpuset.Set) (pick.Choice, error) {
	request := pickRequest(wish)
	if len(wish.zone.Nodes) == 1 {
		return d.picker.Pick(free, request)
	}
	if wish.config.Placement == deviceclasses.PlacementDistribute && wish.config.L3 != deviceclasses.L3Require {
		if choice, err := d.picker.Pick(free, request); err == nil {
			return choice, nil
		}
	}
	request.Zones = wish.zone.Nodes[:1]
	return pick.New(wish.zone.Joined(d.machine)).Pick(free, request)
}

// pickRequest is how the configuration wants the CPUs. One thread of each core is
// chosen as whole cores are: the scheduler counted all threads of them, so they
// are the claim's.
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
		request.Placement = pick.Spread // PlacementDistribute is what the picker does with several zones
	}
	return request
}

// laterThreads are all of the CPUs but the lowest of each core.
func laterThreads(machine *numa.Machine, cpus cpuset.Set) (later cpuset.Set) {
	for i := range machine.Cores {
		mine := machine.Cores[i].CPUs.Intersection(cpus)
		if lowest, ok := mine.First(); ok {
			later = later.Union(mine.Difference(cpuset.New(lowest)))
		}
	}
	return later
}
