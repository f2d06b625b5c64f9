package cpufreq

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Policies returns N of each policy<N> that changes.
func (c Changes) Policies() (policies cpuset.Set) {
	for _, change := range c.Frequencies {
		policies = policies.Union(change.Policies)
	}
	return policies
}

// IdleCPUs returns the CPUs whose idle states change.
func (c Changes) IdleCPUs() (cpus cpuset.Set) {
	for _, limit := range c.Idle {
		cpus = cpus.Union(limit.CPUs)
	}
	return cpus
}

// Only returns the changes of some policies, and of the idle states of some CPUs.
func (c Changes) Only(policies, cpus cpuset.Set) (part Changes) {
	for _, change := range c.Frequencies {
		if change.Policies = change.Policies.Intersection(policies); !change.Policies.IsEmpty() {
			part.Frequencies = append(part.Frequencies, change)
		}
	}
	for _, limit := range c.Idle {
		if limit.CPUs = limit.CPUs.Intersection(cpus); !limit.CPUs.IsEmpty() {
			part.Idle = append(part.Idle, limit)
		}
	}
	return part
}

// Without returns the changes of the policies and CPUs that part does not have.
func (c Changes) Without(part Changes) Changes {
	return c.Only(c.Policies().Difference(part.Policies()), c.IdleCPUs().Difference(part.IdleCPUs()))
}

// Join adds changes of other policies and CPUs.
func (c Changes) Join(other Changes) (all Changes) {
	all.Frequencies, all.Idle = slices.Clone(c.Frequencies), slices.Clone(c.Idle)
	for _, change := range other.Frequencies {
		for policy := range change.Policies.All() {
			all.addChange(policy, change)
		}
	}
	for _, limit := range other.Idle {
		i := slices.IndexFunc(all.Idle, func(l Limit) bool { return l.Before == limit.Before && l.Want == limit.Want })
		if i < 0 {
			all.Idle = append(all.Idle, limit)
			continue
		}
		all.Idle[i].CPUs = all.Idle[i].CPUs.Union(limit.CPUs)
	}
	return all
}
