package cpufreq

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// policiesOf and cpusOf are the sets of which Changes has each member once.
func policiesOf(c *Change) *cpuset.Set { return &c.Policies }
func cpusOf(l *Limit) *cpuset.Set      { return &l.CPUs }

// add adds policies or CPUs to those in the list of which everything else is the same.
func add[T comparable](list []T, of func(*T) *cpuset.Set, added T) []T {
	for i := range list {
		same := added
		*of(&same) = *of(&list[i])
		if same == list[i] {
			*of(&list[i]) = of(&same).Union(*of(&added))
			return list
		}
	}
	return append(list, added)
}

func union[T any](list []T, of func(*T) *cpuset.Set) (all cpuset.Set) {
	for i := range list {
		all = all.Union(*of(&list[i]))
	}
	return all
}

func only[T any](list []T, of func(*T) *cpuset.Set, some cpuset.Set) (part []T) {
	for _, one := range list {
		if *of(&one) = of(&one).Intersection(some); !of(&one).IsEmpty() {
			part = append(part, one)
		}
	}
	return part
}

// Policies returns N of each policy<N> that changes.
func (c Changes) Policies() cpuset.Set { return union(c.Frequencies, policiesOf) }

// IdleCPUs returns the CPUs whose idle states change.
func (c Changes) IdleCPUs() cpuset.Set { return union(c.Idle, cpusOf) }

// Only returns the changes of some policies, and of the idle states of some CPUs.
func (c Changes) Only(policies, cpus cpuset.Set) Changes {
	return Changes{only(c.Frequencies, policiesOf, policies), only(c.Idle, cpusOf, cpus)}
}

// Without returns the changes of the policies and CPUs that part does not have.
func (c Changes) Without(part Changes) Changes {
	return c.Only(c.Policies().Difference(part.Policies()), c.IdleCPUs().Difference(part.IdleCPUs()))
}

// Join adds changes of other policies and CPUs.
func (c Changes) Join(other Changes) Changes {
	all := Changes{slices.Clone(c.Frequencies), slices.Clone(c.Idle)}
	for _, change := range other.Frequencies {
		all.Frequencies = add(all.Frequencies, policiesOf, change)
	}
	for _, limit := range other.Idle {
		all.Idle = add(all.Idle, cpusOf, limit)
	}
	return all
}
