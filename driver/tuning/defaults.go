package tuning

import (
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
type Default struct {
	Asked deviceclasses.PerformanceSettings `json:"asked"`
	cpufreq.Changes
	Applied bool `json:"applied,omitempty"` // the changes say what the kernel made of them
}

func (f Default) equal(other Default) bool {
	return f.Asked.Equal(other.Asked) && f.Changes.Equal(other.Changes) && f.Applied == other.Applied
}

// only returns the part of the default for some CPUs. Of a policy that policies does not
// have, because its CPUs are offline, it has nothing.
func (f Default) only(cpus cpuset.Set, policies []numa.FrequencyPolicy) cpufreq.Changes {
	var ids cpuset.Set
	for i := range policies {
		if policies[i].CPUs.IsSubsetOf(cpus) {
			ids.Insert(policies[i].ID)
		}
	}
	return f.Changes.Only(ids, cpus)
}

// defaultOf returns what CPUs should have while no claim changes them, and which CPUs.
func (t *State) defaultOf() (settings deviceclasses.PerformanceSettings, cpus cpuset.Set) {
	config := t.config
	switch {
	case config == nil || config.Default.IsZero():
		return deviceclasses.PerformanceSettings{}, cpuset.Set{}
	case config.DefaultReserved:
		return config.Default, t.machine.Online
	}
	return config.Default, t.machine.Online.Intersection(t.grantable)
}

// tunedCPUs returns the CPUs whose frequency or idle states claims have changed.
func tunedCPUs(grants []ledger.Grant) (cpus cpuset.Set) {
	for _, grant := range grants {
		for _, share := range grant.Shares {
			if zone := share.Zone(); zone != nil && zone.Performance != nil && !zone.Performance.Changes.IsZero() {
				cpus = cpus.Union(zone.CPUs)
			}
		}
	}
	return cpus
}

// lookedAt is what settleDefaults depends on, besides the configuration.
type lookedAt struct {
	machine *numa.Machine
	changed cpuset.Set
}

// SettleDefaults gives CPUs that no claim changes their default, and takes it back where the
// NodeConfig does not say it any more. It reads nothing if there is no default, or if nothing
// has changed since it last succeeded. It may be repeated after an error or a crash.
func (t *State) SettleDefaults(grants []ledger.Grant) error {
	asked, cpus := t.defaultOf()
	if asked.IsZero() && len(t.first.Defaults) == 0 {
		return nil
	}
	now := lookedAt{t.machine, tunedCPUs(grants)}
	if now == t.settled {
		return nil
	}
	policies, err := t.policiesOf(t.machine.Online)
	if err != nil {
		return err
	}
	free := whole(t.machine.Online.Difference(now.changed), t.machine.Cores, policies)
	target := whole(free.Intersection(cpus), t.machine.Cores, policies)
	if err := t.takeDefaults(asked, free, target, policies); err != nil {
		return err
	}
	if err := t.addDefault(asked, target, policies); err != nil {
		return err
	}
	if err := t.applyDefaults(target, policies); err != nil {
		return err
	}
	t.settled = now
	return nil
}

func (t *State) policiesOf(cpus cpuset.Set) ([]numa.FrequencyPolicy, error) {
	return numa.ReadFrequencyPolicies(t.hosts().Frequencies.Files(), cpus)
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

// takeDefaults gives free CPUs back what they had before a default that is not asked for any
// more, or not on these CPUs.
func (t *State) takeDefaults(asked deviceclasses.PerformanceSettings, free, target cpuset.Set, policies []numa.FrequencyPolicy) error {
	var next []Default
	for _, one := range t.first.Defaults {
		unwanted := free
		if one.Asked.Equal(asked) {
			unwanted = free.Difference(target)
		}
		taken := one.only(unwanted, policies)
		if err := t.hosts().Frequencies.Restore(taken); err != nil {
			return err
		}
		if one.Changes = one.Changes.Without(taken); !one.Changes.IsZero() {
			next = append(next, one)
		}
	}
	return t.recordDefaults(next)
}

// addDefault records what CPUs of the target that have no default yet should have.
func (t *State) addDefault(asked deviceclasses.PerformanceSettings, target cpuset.Set, policies []numa.FrequencyPolicy) error {
	missing := target
	for _, one := range t.first.Defaults {
		of := one.Changes.Policies()
		for i := range policies {
			if of.Contains(policies[i].ID) {
				missing = missing.Difference(policies[i].CPUs)
			}
		}
		missing = missing.Difference(one.Changes.IdleCPUs())
	}
	missing = whole(missing, t.machine.Cores, policies)
	if missing.IsEmpty() || asked.IsZero() {
		return nil
	}
	planned, err := t.Plan(missing, asked)
	if err != nil {
		return fmt.Errorf("performance.default.%w", err)
	}
	return t.recordDefaults(append(slices.Clip(t.first.Defaults), Default{Asked: asked, Changes: planned.Changes}))
}

// applyDefaults makes the CPUs of the target have what is on record, unless they have it
// already. CPUs that came online may have lost it.
func (t *State) applyDefaults(target cpuset.Set, policies []numa.FrequencyPolicy) error {
	var next []Default
	for _, one := range t.first.Defaults {
		pending := one.only(target, policies)
		if one.Applied {
			if _, err := t.hosts().Frequencies.Apply(one.only(target.Intersection(t.online), policies)); err != nil {
				return err
			}
			next = joined(next, one)
			continue
		}
		applied, err := t.hosts().Frequencies.Apply(pending)
		if err != nil {
			return err
		}
		next = joined(next, Default{Asked: one.Asked, Changes: one.Changes.Without(pending)})
		next = joined(next, Default{Asked: one.Asked, Changes: applied, Applied: true})
	}
	return t.recordDefaults(next)
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
