package driver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// SetMemoryPolicies takes a function that says why the container runtime does not set memory
// policies, and returns nil if it does. As long as it does not, claims that ask for one are
// not prepared, except those that are already. Without the function, all are.
func (d *Driver) SetMemoryPolicies(missing func() error) { d.policies.Store(&missing) }

// checkPolicies refuses a new claim whose containers would start without the memory policy
// that it asks for.
func (d *Driver) checkPolicies(claim types.UID, wishes []wish) error {
	missing := d.policies.Load()
	if _, held := d.grants.find(claim); held || missing == nil {
		return nil
	}
	for _, wish := range pinned(wishes) {
		zone, is := wish.wanted.(zoneWish)
		if !is || zone.config.MemoryPolicy == "" {
			continue
		}
		if err := (*missing)(); err != nil {
			return fmt.Errorf("request %s: memoryPolicy %s: %w", wish.request, zone.config.MemoryPolicy, err)
		}
	}
	return nil
}

// policyMems returns the NUMA nodes that the memory policy of the share is about; see Pinned.
func (z *ZoneShare) policyMems() cpuset.Set {
	if z.MemoryPolicy == deviceclasses.MemoryBind {
		return z.binds()
	}
	return z.mems()
}

// kernelPolicy returns the memory policy as /proc/<pid>/numa_maps shows it; "" if the share
// has none.
func (z *ZoneShare) kernelPolicy() string {
	mode, nodes := z.MemoryPolicy, z.policyMems()
	switch {
	case mode == "" || nodes.IsEmpty():
		return ""
	case mode == deviceclasses.MemoryPreferred && nodes.Size() == 1:
		mode = "prefer"
	case mode == deviceclasses.MemoryPreferred:
		mode = "prefer (many)"
	case mode == deviceclasses.MemoryWeightedInterleave:
		mode = "weighted interleave"
	}
	return mode + ":" + nodes.String()
}
