package cdi

import (
	"fmt"
	"slices"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Zone is a share of CPUs and memory. The hook pins the container to it.
type Zone struct {
	CPUs cpuset.Set // empty: the share has memory only
	Mems cpuset.Set // NUMA nodes of its memory; empty: any

	// IdleCPUs is the part of CPUs that the container keeps idle.
	IdleCPUs cpuset.Set

	// MemoryPolicy is what the runtime sets for the container, as /proc/<pid>/numa_maps shows
	// it, such as bind:0-1; empty: none.
	MemoryPolicy string

	Partition string // PartitionRoot, PartitionIsolated or PartitionNone
	Scope     string // ScopeContainer or ScopePod

	// Mixed says that the container also runs on SharedCPUs, the node's shared
	// pool. The hook then leaves the container's CPUs alone.
	Mixed      bool
	SharedCPUs cpuset.Set
}

func (z *Zone) validate() error {
	if partitions := []string{PartitionRoot, PartitionIsolated, PartitionNone}; !slices.Contains(partitions, z.Partition) {
		return fmt.Errorf("partition %q: allowed are %s", z.Partition, strings.Join(partitions, ", "))
	}
	if scopes := []string{ScopeContainer, ScopePod}; !slices.Contains(scopes, z.Scope) {
		return fmt.Errorf("scope %q: allowed are %s", z.Scope, strings.Join(scopes, ", "))
	}
	return nil
}

// edits has a hook that only records the use of the claim if there is nothing to pin.
func (z *Zone) edits(claim Claim, hook Hook) specs.ContainerEdits {
	if hook.None {
		return specs.ContainerEdits{}
	}
	first := pinHook(claim, z, hook)
	if z.HookCPUs().IsEmpty() && z.Mems.IsEmpty() {
		first = useHook(claim, hook)
	}
	edits := specs.ContainerEdits{Hooks: []*specs.Hook{first}}
	if z.MemoryPolicy != "" {
		edits.Hooks = append(edits.Hooks, mempolicyHook(claim, z, hook))
	}
	return edits
}

// HookCPUs returns the CPUs that the hook gives the container. They are empty if the
// hook leaves the container's CPUs alone.
func (z *Zone) HookCPUs() cpuset.Set {
	switch {
	case z.Mixed:
		return cpuset.Set{}
	case z.Partition == PartitionNone:
		return z.runCPUs() // without a partition, nothing keeps other tasks off the idle CPUs
	}
	return z.CPUs
}

func (z *Zone) runCPUs() cpuset.Set { return z.CPUs.Difference(z.IdleCPUs) }

func (z *Zone) addTo(c *content) {
	c.zones = true
	c.cpus = c.cpus.Union(z.CPUs)
	c.idleCPUs = c.idleCPUs.Union(z.IdleCPUs)
	c.mems = c.mems.Union(z.Mems)
	c.sharedCPUs = c.sharedCPUs.Union(z.SharedCPUs)
	c.mixed = c.mixed || z.Mixed
}
