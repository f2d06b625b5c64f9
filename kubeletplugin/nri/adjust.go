package nri

import (
	"fmt"

	"github.com/containerd/nri/pkg/api"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// shared says what containers without CPUs of a claim should have.
type shared struct {
	pool     cpuset.Set // the CPUs that no claim holds
	restrict bool       // containers must be kept on the pool
}

// cpus returns the cpuset of a container without CPUs of a claim. It returns "" if the
// container is left alone. A container that was restricted once has a cpuset of its own.
// That cpuset follows the pool, so that it never has CPUs of a partition: before Linux
// 7.0, it would make a partition in the same pod invalid.
func (s shared) cpus(narrowed bool) string {
	if s.restrict || narrowed {
		return s.pool.String()
	}
	return ""
}

// placement is a cpuset, with lists as the kernel prints them. In an aim, an empty list
// means that the container keeps what it has.
type placement struct{ cpus, mems string }

// adjust returns what a container should have. A container whose claims have no CPUs
// stays in the pool.
func adjust(pinned driver.Pinned, claimed, narrowed bool, rest shared) placement {
	if !claimed {
		return placement{cpus: rest.cpus(narrowed)}
	}
	aim := placement{cpus: pinned.CPUs.String(), mems: pinned.Mems.String()}
	switch {
	case pinned.CPUs.IsEmpty():
		aim.cpus = rest.cpus(narrowed)
	case pinned.Mixed:
		aim.cpus = pinned.CPUs.Union(rest.pool).String()
	}
	return aim
}

// missing returns the part of the aim that the container does not have yet.
func (p placement) missing(aim placement) (change placement) {
	if aim.cpus != p.cpus {
		change.cpus = aim.cpus
	}
	if aim.mems != p.mems {
		change.mems = aim.mems
	}
	return change
}

// with returns the cpuset after a change.
func (p placement) with(change placement) placement {
	if change.cpus != "" {
		p.cpus = change.cpus
	}
	if change.mems != "" {
		p.mems = change.mems
	}
	return p
}

// update returns the request to the runtime to give a container this cpuset.
func (p placement) update(id string) *api.ContainerUpdate {
	update := &api.ContainerUpdate{}
	update.SetContainerId(id)
	if p.cpus != "" {
		update.SetLinuxCPUSetCPUs(p.cpus)
	}
	if p.mems != "" {
		update.SetLinuxCPUSetMems(p.mems)
	}
	return update
}

// memoryMode returns the kernel's mode for the memory policy of a ZoneConfig and a number
// of NUMA nodes. The plain preferred mode would use only the first of several nodes.
func memoryMode(policy string, nodes int) (api.MpolMode, error) {
	switch policy {
	case deviceclasses.MemoryBind:
		return api.MpolMode_MPOL_BIND, nil
	case deviceclasses.MemoryPreferred:
		if nodes > 1 {
			return api.MpolMode_MPOL_PREFERRED_MANY, nil // Linux 5.15
		}
		return api.MpolMode_MPOL_PREFERRED, nil
	case deviceclasses.MemoryInterleave:
		return api.MpolMode_MPOL_INTERLEAVE, nil
	case deviceclasses.MemoryWeightedInterleave:
		return api.MpolMode_MPOL_WEIGHTED_INTERLEAVE, nil // Linux 6.9
	}
	return 0, fmt.Errorf("memory policy %q is not bind, preferred, interleave or weighted-interleave", policy)
}
