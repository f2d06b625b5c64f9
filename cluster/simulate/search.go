package simulate

import (
	"context"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/capacities"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// search asks the allocator for devices of the node, and returns what it allocates. From
// Kubernetes 1.38 on, an allocator gives up on requests whose amounts cannot be compared with
// a device. It finds out when it gets to the first device that the request selects.
func (c *Cluster) search(ctx context.Context, n *node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	f, found := c.firstFault(n, claims)
	if !found {
		return n.allocator.Allocate(ctx, n.Node, claims)
	}
	if f.all {
		return nil, f.err // before any search
	}
	before := f.before(claims)
	first, err := n.allocator.Allocate(ctx, n.Node, before)
	switch {
	case err != nil || len(first) < len(before):
		return nil, err // the allocator does not get there
	case slices.ContainsFunc(first, f.takes):
		return n.allocator.Allocate(ctx, n.Node, claims)
	case f.alternative == 0:
		return nil, f.err
	}
	// The allocator tries the alternatives before, and gives up before it tries other devices
	// for the requests before.
	given, err := c.search(ctx, n, f.without(claims))
	if err == nil && !begins(given, first) {
		return nil, f.err
	}
	return given, err
}

// begins reports whether the allocations have the devices of the first ones, in their order.
func begins(all, first []resourceapi.AllocationResult) bool {
	if len(all) < max(len(first), 1) {
		return false
	}
	for i := range first {
		for j, r := range first[i].Devices.Results {
			if j >= len(all[i].Devices.Results) || deviceOf(all[i].Devices.Results[j]) != deviceOf(r) || all[i].Devices.Results[j].Request != r.Request {
				return false
			}
		}
	}
	return true
}

func deviceOf(r resourceapi.DeviceRequestAllocationResult) allocation.DeviceID {
	return allocation.MakeDeviceID(r.Driver, r.Pool, r.Device)
}

// fault is the place in claims at which an allocator gives up.
type fault struct {
	claim, request, alternative int
	all                         bool // the request asks for all devices
	device                      *inventory.Device
	err                         error
}

// firstFault returns the first place at which an allocator may give up because of amounts.
func (c *Cluster) firstFault(n *node, claims []*resourceapi.ResourceClaim) (f fault, found bool) {
	if c.minor < 38 {
		return f, false
	}
	for i, claim := range claims {
		for j, request := range claim.Spec.Devices.Requests {
			for k, a := range requests.Alternatives(request) {
				if !capacities.Doubtful(a.Capacity) {
					continue
				}
				all := a.Mode == resourceapi.DeviceAllocationModeAll
				for l := range n.Devices {
					d := &n.Devices[l]
					wrong := capacities.Fault(d.Slice.Spec.Driver, d.Device, a.Capacity)
					if wrong == nil || d.Unusable() != "" || !all && n.state.HeldWhole(d.ID) {
						continue
					}
					if selected, err := c.passes(a, d); err != nil || !selected {
						continue
					}
					err := fmt.Errorf("claim %s, request %s: checking capacity for device %s: %w", keyOf(claim), a.Name, d.Name, wrong)
					return fault{i, j, k, all, d, err}, true
				}
			}
		}
	}
	return f, false
}

// without returns the claims with only the alternatives before the fault.
func (f *fault) without(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	claims = slices.Clone(claims)
	claims[f.claim] = claims[f.claim].DeepCopy()
	request := &claims[f.claim].Spec.Devices.Requests[f.request]
	request.FirstAvailable = request.FirstAvailable[:f.alternative]
	return claims
}

// before returns the claims with only the requests before the fault.
func (f *fault) before(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	list := slices.Clone(claims[:f.claim])
	if f.request > 0 {
		claim := claims[f.claim].DeepCopy()
		claim.Spec.Devices.Requests = claim.Spec.Devices.Requests[:f.request]
		list = append(list, claim)
	}
	return list
}

// takes reports whether an allocation leaves nothing of the device with the fault.
func (f *fault) takes(given resourceapi.AllocationResult) bool {
	return !f.device.Shared() && slices.ContainsFunc(given.Devices.Results, func(r resourceapi.DeviceRequestAllocationResult) bool {
		return deviceOf(r) == f.device.ID
	})
}
