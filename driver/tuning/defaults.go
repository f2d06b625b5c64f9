package tuning

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A NodeConfig may say what CPUs have while no claim changes them. A claim finds that, and
// gives it back: what it records as before is the default.

// Default is what some CPUs have while no claim changes them, and what they had before the
// NodeConfig said so.
type Default = ledger.Performance

// only returns the part of the changes for some CPUs. Of a policy that policies does not
// have, because its CPUs are offline, it has nothing.
func only(changes cpufreq.Changes, cpus cpuset.Set, policies []numa.FrequencyPolicy) cpufreq.Changes {
	var ids cpuset.Set
	for i := range policies {
		if policies[i].CPUs.IsSubsetOf(cpus) {
			ids.Insert(policies[i].ID)
		}
	}
	return changes.Only(ids, cpus)
}

// defaultOf returns what CPUs should have while no claim changes them, and which CPUs.
func (t *State) defaultOf() (settings deviceclasses.PerformanceSettings, cpus cpuset.Set) {
	if cpus = t.machine.Online; !t.config.DefaultReserved {
		cpus = cpus.Intersection(t.grantable)
	}
	return t.config.Default, cpus
}

// tunedCPUs returns the CPUs whose frequency or idle states claims have changed.
func tunedCPUs(grants []ledger.Grant) (cpus cpuset.Set) {
	for _, zone := range Tuned(grants...) {
		if !zone.Performance.Changes.IsZero() {
			cpus = cpus.Union(zone.CPUs)
		}
	}
	return cpus
}

// lookedAt is what SettleDefaults depends on, besides the configuration.
type lookedAt struct {
	machine *numa.Machine
	changed cpuset.Set
}

// SettleDefaults gives CPUs that no claim changes their default, and takes it back where the
// NodeConfig does not say it any more. It reads nothing if there is no default, or if nothing
// has changed since it last succeeded, or found that the machine does not have the default. It
// may be repeated after an error or a crash.
func (t *State) SettleDefaults(grants []ledger.Grant) error {
	asked, cpus := t.defaultOf()
	if asked.IsZero() && len(t.first.Defaults) == 0 {
		return nil
	}
	now := lookedAt{t.machine, tunedCPUs(grants)}
	if now == t.settled {
		return t.unmet
	}
	policies, err := numa.ReadFrequencyPolicies(t.config.Frequencies.Files(), t.machine.Online)
	if err != nil {
		return err
	}
	free := whole(t.machine.Online.Difference(now.changed), t.machine.Cores, policies)
	target := whole(free.Intersection(cpus), t.machine.Cores, policies)
	err = t.eachDefault(func(one Default) (Default, cpufreq.Changes, error) {
		unwanted := free
		if one.Asked.Equal(asked) {
			unwanted = free.Difference(target)
		}
		taken := only(one.Changes, unwanted, policies)
		one.Changes = one.Changes.Without(taken)
		return one, cpufreq.Changes{}, t.config.Frequencies.Restore(taken)
	})
	if err != nil {
		return err
	}
	added, unmet := t.missing(asked, target, policies)
	if err := t.recordFirst(func(first *First) { first.Defaults = append(slices.Clip(first.Defaults), added...) }); err != nil {
		return err
	}
	err = t.eachDefault(func(one Default) (Default, cpufreq.Changes, error) {
		cpus := target
		if one.Applied { // CPUs that came online may have lost it
			cpus = target.Intersection(t.restarted)
		}
		pending := only(one.Changes, cpus, policies)
		applied, err := t.config.Frequencies.Apply(pending)
		one.Changes = one.Changes.Without(pending)
		return one, applied, err
	})
	if err != nil {
		return err
	}
	t.settled, t.unmet, t.restarted = now, unmet, cpuset.Set{}
	return unmet
}

// whole returns those of the CPUs that share neither a core nor a frequency policy with
// others.
func whole(cpus cpuset.Set, cores []numa.Core, policies []numa.FrequencyPolicy) cpuset.Set {
	for before := (cpuset.Set{}); before != cpus; {
		before = cpus
		for i := range cores {
			if !cores[i].CPUs.IsSubsetOf(cpus) {
				cpus = cpus.Difference(cores[i].CPUs)
			}
		}
		for i := range policies {
			if !policies[i].CPUs.IsSubsetOf(cpus) {
				cpus = cpus.Difference(policies[i].CPUs)
			}
		}
	}
	return cpus
}

// missing returns what CPUs of the target that have no default yet should have; none if the error
// says that the machine does not have it.
func (t *State) missing(asked deviceclasses.PerformanceSettings, target cpuset.Set, policies []numa.FrequencyPolicy) ([]Default, error) {
	var frequencies, idle cpuset.Set // of the CPUs that have them already
	for _, one := range t.first.Defaults {
		of := one.Changes.Policies()
		for i := range policies {
			if of.Contains(policies[i].ID) {
				frequencies = frequencies.Union(policies[i].CPUs)
			}
		}
		idle = idle.Union(one.Changes.IdleCPUs())
	}
	var added []Default
	for _, part := range []struct {
		cpus  cpuset.Set
		asked deviceclasses.PerformanceSettings
	}{
		{whole(target.Difference(frequencies).Difference(idle), t.machine.Cores, policies), asked},
		{target.Intersection(frequencies).Difference(idle), deviceclasses.PerformanceSettings{IdleLatency: asked.IdleLatency}}, // online later than others of their policy
	} {
		if part.cpus.IsEmpty() || part.asked.IsZero() {
			continue
		}
		planned, err := t.Plan(part.cpus, part.asked)
		if err != nil {
			return nil, fmt.Errorf("performance.default.%w", err)
		}
		added = append(added, Default{Asked: asked, Changes: planned.Changes})
	}
	return added, nil
}

// eachDefault puts on record what change leaves of each default, and what it has applied of it.
func (t *State) eachDefault(change func(Default) (left Default, applied cpufreq.Changes, err error)) error {
	var next []Default
	for _, one := range t.first.Defaults {
		left, applied, err := change(one)
		if err != nil {
			return err
		}
		next = joined(joined(next, left), Default{Asked: one.Asked, Changes: applied, Applied: true})
	}
	return t.recordFirst(func(first *First) { first.Defaults = next })
}

// joined adds a default to one that differs in its CPUs only.
func joined(list []Default, added Default) []Default {
	if added.Changes.IsZero() {
		return list
	}
	for i := range list {
		if list[i].Asked.Equal(added.Asked) && list[i].Applied == added.Applied {
			list[i].Changes = list[i].Changes.Join(added.Changes)
			return list
		}
	}
	return append(list, added)
}

func (t frequencies) assume(grants []ledger.Grant) error {
	asked, cpus := t.defaultOf()
	if asked.IsZero() {
		return nil
	}
	policies, err := numa.ReadFrequencyPolicies(t.config.Frequencies.Files(), t.machine.Online)
	if err != nil {
		return err
	}
	var claimed cpufreq.Changes
	for _, zone := range Tuned(grants...) {
		claimed = claimed.Join(zone.Performance.Changes)
	}
	began := func(now cpufreq.State) cpufreq.State { return cpufreq.Began(now, claimed) }
	changes, err := t.changes(whole(cpus, t.machine.Cores, policies), asked, began)
	if err == nil && !changes.IsZero() {
		t.first.Defaults = []Default{{Asked: asked, Changes: changes}}
	}
	return err
}

func (t frequencies) giveBack() (err error) {
	for _, one := range t.first.Defaults {
		err = errors.Join(err, t.config.Frequencies.Restore(one.Changes))
	}
	return err
}
