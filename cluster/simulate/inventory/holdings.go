package inventory

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Holdings is what claims hold, by pool.
type Holdings map[PoolID]*poolHoldings

// poolHoldings is what claims hold of one pool, by claim. version grows with every
// change.
type poolHoldings struct {
	version int
	claims  map[types.NamespacedName]*claimHoldings
}

// claimHoldings is what one claim holds of one pool.
type claimHoldings struct {
	devices []allocation.DeviceID
	shares  []allocation.Share
}

// Add adds what a claim holds, if it is allocated. It mirrors foreachAllocatedDevice of
// the scheduler's plugin: admin access holds nothing, and without consumable capacity a
// claim always holds whole devices.
func (h Holdings) Add(claim *resourceapi.ResourceClaim, consumableCapacity bool) {
	if claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if ptr.Deref(result.AdminAccess, false) {
			continue
		}
		held := h.ofClaim(claim, PoolID{result.Driver, result.Pool})
		device := allocation.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil || !consumableCapacity {
			held.devices = append(held.devices, device)
			continue
		}
		held.shares = append(held.shares, allocation.NewShare(device, result.ShareID, spelling.Amounts(result.Driver, result.ConsumedCapacity)))
	}
}

// ofClaim returns what the claim holds of the pool, so that the caller can change it.
// If there is no entry yet, it makes one.
func (h Holdings) ofClaim(claim *resourceapi.ResourceClaim, id PoolID) *claimHoldings {
	a := h[id]
	if a == nil {
		a = &poolHoldings{claims: make(map[types.NamespacedName]*claimHoldings)}
		h[id] = a
	}
	a.version++
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	if a.claims[name] == nil {
		a.claims[name] = &claimHoldings{}
	}
	return a.claims[name]
}

// Remove removes what the claim holds. The claim must have the same allocation as when
// it was added.
func (h Holdings) Remove(claim *resourceapi.ResourceClaim) {
	if claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if a := h[PoolID{result.Driver, result.Pool}]; a != nil {
			a.version++
			delete(a.claims, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
}

// Version returns a number that grows when the holdings of these pools change.
func (h Holdings) Version(pools []*Pool) (sum int) {
	for _, p := range pools {
		if a := h[p.ID]; a != nil {
			sum += a.version
		}
	}
	return sum
}

// State returns the holdings of the pools in the form that the allocator takes. The
// holdings of other pools do not matter to the allocator for these pools.
func (h Holdings) State(pools []*Pool) allocation.State {
	state := allocation.NewState()
	for _, p := range pools {
		a := h[p.ID]
		if a == nil {
			continue
		}
		for _, held := range a.claims {
			state.AddDevices(held.devices...)
			for _, share := range held.shares {
				state.AddShare(share)
			}
		}
	}
	return state
}

// Hold is what one claim holds of a device.
type Hold struct {
	Claim types.NamespacedName
	// Capacity is nil if the claim holds the whole device, or a share without capacity.
	Capacity map[resourceapi.QualifiedName]resource.Quantity
}

// ByDevice returns who holds each device of the pools.
func (h Holdings) ByDevice(pools []*Pool) map[allocation.DeviceID][]Hold {
	type place struct {
		device allocation.DeviceID
		claim  types.NamespacedName
	}
	held := make(map[place]Hold)
	for _, p := range pools {
		a := h[p.ID]
		if a == nil {
			continue
		}
		for claim, holds := range a.claims {
			for _, device := range holds.devices {
				held[place{device, claim}] = Hold{Claim: claim}
			}
			for _, share := range holds.shares {
				at := place{share.Device, claim}
				if held[at].Capacity == nil {
					held[at] = Hold{claim, make(map[resourceapi.QualifiedName]resource.Quantity)}
				}
				for name, amount := range share.Consumed {
					sum := held[at].Capacity[name]
					sum.Add(amount)
					held[at].Capacity[name] = sum
				}
			}
		}
	}
	byDevice := make(map[allocation.DeviceID][]Hold)
	for at, hold := range held {
		byDevice[at.device] = append(byDevice[at.device], hold)
	}
	return byDevice
}
