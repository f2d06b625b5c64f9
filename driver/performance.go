package driver

import (
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A claim may want its CPUs fast and quiet. What they had is recorded before anything
// changes, and stays on record until it is restored.

// Tuning says how a node makes CPUs fast and quiet for claims.
type Tuning struct {
	Frequencies *cpufreq.Host
	Interrupts  *interrupts.Host
	Uncore      *uncore.Host
	ClaimsTune  bool // claims can ask for it, and not only their DeviceClasses
	OnlyDefault bool // neither claims nor their DeviceClasses can ask for it

	Default         deviceclasses.PerformanceSettings // of CPUs that no claim changes, without interrupts and the uncore
	DefaultReserved bool                              // also of those that no claim gets
}

// Performance is what the CPUs of a share have while a claim has them, and what they had
// before. A recorded one is never changed.
type Performance struct {
	Asked deviceclasses.PerformanceSettings `json:"asked"`
	cpufreq.Changes
	Uncore  []uncore.Demand      `json:"uncore,omitempty"`  // of the dies of the CPUs
	Applied bool                 `json:"applied,omitempty"` // the changes and demands say what the kernel made of them
	Staying []interrupts.Refusal `json:"staying,omitempty"` // interrupts that the kernel does not move
}

func (p *Performance) equal(other *Performance) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Asked.Equal(other.Asked) && p.Changes.Equal(other.Changes) && slices.Equal(p.Uncore, other.Uncore) &&
		p.Applied == other.Applied && slices.Equal(p.Staying, other.Staying)
}

func (p *Performance) validate() error {
	if p == nil {
		return nil
	}
	if err := errors.Join(p.Asked.Validate(), p.Changes.Validate()); err != nil {
		return fmt.Errorf("performance.%w", err)
	}
	for _, demand := range p.Uncore {
		if err := demand.Validate(); err != nil {
			return fmt.Errorf("performance.%w", err)
		}
	}
	return nil
}

// status returns what the claim's status says; nil if the claim changes nothing.
func (p *Performance) status() *deviceclasses.PerformanceStatus {
	if p == nil {
		return nil
	}
	status := &deviceclasses.PerformanceStatus{Asked: p.Asked}
	for _, change := range p.Frequencies {
		frequency := deviceclasses.FrequencyStatus{
			Policies: change.Policies, Driver: change.Driver, Governor: change.Got.Governor, EnergyPreference: change.Got.EnergyPreference,
		}
		if change.Got.MinKHz > 0 {
			frequency.MinFrequency = deviceclasses.FrequencyText(change.Got.MinKHz)
		}
		if change.Got.MaxKHz > 0 {
			frequency.MaxFrequency = deviceclasses.FrequencyText(change.Got.MaxKHz)
		}
		status.Frequencies = append(status.Frequencies, frequency)
	}
	for _, demand := range p.Uncore {
		die := deviceclasses.UncoreStatus{Package: demand.Package, Die: demand.Die}
		if demand.GotKHz > 0 {
			die.MinFrequency = deviceclasses.FrequencyText(demand.GotKHz)
		}
		status.Uncore = append(status.Uncore, die)
	}
	for _, stays := range p.Staying {
		status.Interrupts = append(status.Interrupts, deviceclasses.StayingInterrupt(stays))
	}
	return status
}

// mayTune refuses settings that this node does not change, or not for this claim. What is on
// record for it stays allowed.
func (d *Driver) mayTune(ofClass, asked, recorded deviceclasses.PerformanceSettings) error {
	switch {
	case asked.IsZero() || asked.Equal(recorded):
		return nil
	case d.config.Tuning == nil || d.config.Tuning.OnlyDefault:
		return fmt.Errorf("%s: claims change no frequencies, idle states and interrupts on this node: performance.allow is not set in its NodeConfig", asked.First())
	case !asked.Equal(ofClass) && !d.config.Tuning.ClaimsTune:
		return fmt.Errorf("%s: only a DeviceClass can change this on this node: performance.allow is %s in its NodeConfig", asked.First(), deviceclasses.AllowClass)
	}
	return nil
}

// tuned returns the settings on record for a request.
func (d *Driver) tuned(claimUID types.UID, request string) deviceclasses.PerformanceSettings {
	recorded, _ := d.grants.find(claimUID)
	for _, share := range recorded.Shares {
		if zone := share.Zone(); zone != nil && zone.Performance != nil && share.Request == request {
			return zone.Performance.Asked
		}
	}
	return deviceclasses.PerformanceSettings{}
}

// planPerformance decides what these CPUs should have. It reads what they have now.
func (d *Driver) planPerformance(cpus cpuset.Set, asked deviceclasses.PerformanceSettings) (*Performance, error) {
	state, err := cpufreq.Read(d.tuning().Frequencies.Files(), cpus, asked)
	if err != nil {
		return nil, err
	}
	changes, err := cpufreq.Plan(state, d.machine.Cores, cpus, asked)
	if err != nil {
		return nil, err
	}
	demands, err := d.planUncore(cpus, asked.MinUncoreFrequency)
	if err != nil {
		return nil, err
	}
	return &Performance{Asked: asked, Changes: changes, Uncore: demands}, nil
}

// errNotTuned is why nothing is written on a node whose NodeConfig does not allow it any
// more.
var errNotTuned = errors.New("this node changes no frequencies, idle states and interrupts any more: set performance.allow in its NodeConfig")

// tuning returns the hosts that change CPUs. On a node that changes none, they only read.
func (d *Driver) tuning() Tuning {
	if d.config.Tuning != nil {
		return *d.config.Tuning
	}
	refuse := func(string, string) error { return errNotTuned }
	return Tuning{Frequencies: cpufreq.New(d.config.Machine, refuse), Interrupts: interrupts.New(d.config.Machine, refuse), Uncore: uncore.New(d.config.Machine, refuse)}
}

// untuned returns the grant without what its CPUs had before.
func (g Grant) untuned() Grant {
	g.Shares = slices.Clone(g.Shares)
	for i := range g.Shares {
		if zone := g.Shares[i].Zone(); zone != nil && zone.Performance != nil {
			next := *zone
			next.Performance = &Performance{Asked: zone.Performance.Asked}
			g.Shares[i].Kind = &next
		}
	}
	return g
}

// tunes reports whether a share of the grant changes CPUs and, if unapplied is true, whether
// one still has to.
func (g Grant) tunes(unapplied bool) bool {
	return slices.ContainsFunc(g.Shares, func(s Share) bool {
		zone := s.Zone()
		return zone != nil && zone.Performance != nil && !(unapplied && zone.Performance.Applied)
	})
}

// tuneSteps returns the step that makes the CPUs of a grant on record as the claim wants
// them, and records what the kernel made of that; none if they are so.
func (d *Driver) tuneSteps(grant Grant) []step {
	if !grant.tunes(true) {
		return nil
	}
	return []step{{"make the CPUs of claim " + grant.name() + " as it wants them", func() error {
		next := grant
		next.Shares = slices.Clone(grant.Shares)
		for i := range next.Shares {
			zone := next.Shares[i].Zone()
			if zone == nil || zone.Performance == nil {
				continue
			}
			applied, err := d.tuning().Frequencies.Apply(zone.Performance.Changes)
			if err != nil {
				return err
			}
			tuned := *zone
			tuned.Performance = &Performance{Asked: zone.Performance.Asked, Changes: applied, Uncore: zone.Performance.Uncore, Applied: true}
			next.Shares[i].Kind = &tuned
		}
		next, err := d.quieten(next)
		if err != nil {
			return err
		}
		if err := d.settleUncore(d.grants.grants(), &next); err != nil {
			return err
		}
		return d.recordStep("record claim "+next.name(), d.grants.with(next)).run()
	}}}
}

// untuneSteps returns the steps that give CPUs back what they had, and record that, if the
// claim was allocated again: what its CPUs have now is not what they had before it.
func (d *Driver) untuneSteps(claim *resourceapi.ResourceClaim, wishes []wish) []step {
	recorded, held := d.grants.find(claim.UID)
	if !held || !recorded.tunes(false) || recorded.fulfils(wishes) {
		return nil
	}
	others := d.grants.without(claim.UID).grants()
	var steps []step
	for i := range recorded.Shares {
		if zone := recorded.Shares[i].Zone(); zone != nil {
			steps = append(steps, zone.undo(d, recorded.name(), others)...)
		}
	}
	released := recorded.untuned()
	for i := range released.Shares {
		if zone := released.Shares[i].Zone(); zone != nil && zone.Performance != nil {
			zone.Performance = nil // untuned has made this share
		}
	}
	return append(steps, d.recordStep("record claim "+released.name(), d.grants.with(released)))
}

// undo gives the CPUs back what they had, unless one of the other grants has the same CPUs
// and wants the same.
func (z *ZoneShare) undo(d *Driver, claim string, others []Grant) []step {
	kept := func(other Share) bool {
		zone := other.Zone()
		return zone != nil && zone.CPUs == z.CPUs && zone.Performance != nil && zone.Performance.Asked.Equal(z.Performance.Asked)
	}
	if z.Performance == nil || slices.ContainsFunc(others, func(g Grant) bool { return slices.ContainsFunc(g.Shares, kept) }) {
		return nil
	}
	return []step{{"give the CPUs of claim " + claim + " back what they had", func() error {
		err := d.tuning().Frequencies.Restore(z.Performance.Changes)
		if err == nil && z.Performance.Asked.Interrupts != "" {
			_, err = d.moveInterrupts(others)
		}
		if err == nil && len(z.Performance.Uncore) > 0 {
			err = d.settleUncore(others, nil)
		}
		if err != nil {
			return &NotRestoredError{inOneLine{err}}
		}
		return nil
	}}}
}
