package driver

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
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
	choice, err := choose(p.picker, p.machine, wish.zone, wish.config, wish.cpus, free)
	if errors.Is(err, pick.ErrNotEnough) {
		return p.namingBlocked(err, wish.zone)
	}
	if err != nil {
		return err
	}
	share.CPUs, share.IdleCPUs, share.Why = choice.CPUs, choice.Idle, choice.Why
	return nil
}

// Choice is the CPUs of a claim.
type Choice struct {
	CPUs cpuset.Set // that it holds
	Idle cpuset.Set // those of them on which its containers do not run
	Why  string     // in one line
}

// Choose chooses CPUs of a zone from the free ones, as Prepare does for a claim with this
// configuration. An error wraps [ErrNotEnough] if there are too few.
func Choose(machine numa.Machine, zone zones.Zone, config deviceclasses.ZoneConfig, cpus int, free cpuset.Set) (Choice, error) {
	return choose(pick.New(machine), &machine, zone, config, cpus, free)
}

func choose(picker *pick.Picker, machine *numa.Machine, zone zones.Zone, config deviceclasses.ZoneConfig, cpus int, free cpuset.Set) (Choice, error) {
	chosen, err := pickIn(picker, machine, zone, config, cpus, free.Intersection(zone.CPUs))
	if err != nil {
		return Choice{}, err
	}
	choice := Choice{CPUs: chosen.CPUs, Why: chosen.Why.String()}
	if config.CoreType != "" {
		choice.Why += "; on " + coreTypesOf(machine, choice.CPUs) + " cores"
	}
	if config.Cores == deviceclasses.CoresOneThreadPerCore {
		choice.Idle = laterThreads(machine, choice.CPUs)
		choice.Why += fmt.Sprintf("; %d of the %d cpus kept idle", choice.Idle.Size(), choice.CPUs.Size())
	}
	return choice, nil
}

// pickIn chooses from the free CPUs of the zone. It treats a zone of several NUMA nodes as
// one NUMA node, in which each of them is a die. Only placement distribute divides the
// CPUs among the NUMA nodes, if l3 is not require.
func pickIn(picker *pick.Picker, machine *numa.Machine, zone zones.Zone, config deviceclasses.ZoneConfig, cpus int, free cpuset.Set) (pick.Choice, error) {
	request := pickRequest(config)
	request.CPUs, request.Zones = cpus, zone.Nodes
	if request.CoreType != "" {
		choice, err := pickAs(picker, machine, zone, config, request, free)
		if !errors.Is(err, pick.ErrNotEnough) {
			return choice, err
		}
		request.CoreType = ""
	}
	return pickAs(picker, machine, zone, config, request, free)
}

func pickAs(picker *pick.Picker, machine *numa.Machine, zone zones.Zone, config deviceclasses.ZoneConfig, request pick.Request, free cpuset.Set) (pick.Choice, error) {
	if len(zone.Nodes) == 1 || config.Placement == deviceclasses.PlacementDistribute && config.L3 != deviceclasses.L3Require {
		return picker.Pick(free, request)
	}
	request.Zones = zone.Nodes[:1]
	return pick.New(zone.Joined(machine)).Pick(free, request)
}

// pickRequest translates the configuration of the claim for the picker. Whole cores are
// chosen for one-thread-per-core too: the scheduler counted all their threads, so the
// claim holds them.
func pickRequest(config deviceclasses.ZoneConfig) (request pick.Request) {
	if config.Cores == deviceclasses.CoresThread {
		request.Cores = pick.SingleThreads
	}
	switch config.L3 {
	case deviceclasses.L3Prefer:
		request.L3 = pick.PreferOneL3
	case deviceclasses.L3Require:
		request.L3 = pick.RequireOneL3
	}
	request.CoreType = numa.CoreType(config.CoreType)
	if config.Placement == deviceclasses.PlacementSpread {
		request.Placement = pick.Spread // PlacementDistribute needs no case: the picker distributes over several zones
	}
	return request
}

// coreTypesOf returns the types of the cores of some CPUs, such as "performance and efficient".
func coreTypesOf(machine *numa.Machine, cpus cpuset.Set) string {
	var types []string
	for i := range machine.Cores {
		if kind := string(machine.Cores[i].Type); machine.Cores[i].CPUs.Overlaps(cpus) && !slices.Contains(types, kind) {
			types = append(types, kind)
		}
	}
	return strings.Join(types, " and ")
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
