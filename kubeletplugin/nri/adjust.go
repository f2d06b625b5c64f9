package nri

import (
	"fmt"

	"github.com/containerd/nri/pkg/api"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// shared is what containers without a claim's CPUs should have.
type shared struct {
	pool cpuset.Set // the CPUs that no claim holds
	cpus string     // the pool, all CPUs again, or empty: they are left alone
}

// placement is a cpuset as the kernel prints its lists. An empty list, as an
// aim, leaves what there is.
type placement struct{ cpus, mems string }

// adjust says what a container should have. Claims without CPUs do not take
// their container out of the pool.
func adjust(pinned driver.Pinned, claimed bool, rest shared) placement {
	if !claimed {
		return placement{cpus: rest.cpus}
	}
	aim := placement{cpus: pinned.CPUs.String(), mems: pinned.Mems.String()}
	switch {
	case pinned.CPUs.IsEmpty():
		aim.cpus = rest.cpus
	case pinned.Mixed:
		aim.cpus = pinned.CPUs.Union(rest.pool).String()
	}
	return aim
}

// missing is the part of the aim that is not there yet.
func (p placement) missing(aim placement) (change placement) {
	if aim.cpus != p.cpus {
		change.cpus = aim.cpus
	}
	if aim.mems != p.mems {
		change.mems = aim.mems
	}
	return change
}

// with is the cpuset after a change.
func (p placement) with(change placement) placement {
	if change.cpus != "" {
		p.cpus = change.cpus
	}
	if change.mems != "" {
		p.mems = change.mems
	}
	return p
}

// update asks the runtime for it.
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

// memoryMode is the kernel's name of a ZoneConfig's memory policy over so many
// NUMA nodes. The plain preferred mode would use only the first of several.
func memoryMode(policy string, nodes int) (api.MpolMode, error) {
	switch policy {
	case "bind":
		return api.MpolMode_MPOL_BIND, nil
	case "preferred":
		if nodes > 1 {
			return api.MpolMode_MPOL_PREFERRED_MANY, nil // Linux 5.15
		}
		return api.MpolMode_MPOL_PREFERRED, nil
	case "interleave":
		return api.MpolMode_MPOL_INTERLEAVE, nil
	case "weighted-interleave":
		return api.MpolMode_MPOL_WEIGHTED_INTERLEAVE, nil // Linux 6.9
	}
	return 0, fmt.Errorf("memory policy %q is not bind, preferred, interleave or weighted-interleave", policy)
}
