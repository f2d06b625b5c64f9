package inventory

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Ledger is what claims hold, by pool.
type Ledger map[PoolID]*account

// account is what claims hold of a pool, by their names. Its version grows with
// every change.
type account struct {
	version  int
	holdings map[types.NamespacedName]*holding
}

// holding is what one claim holds.
type holding struct {
	devices  []structured.DeviceID
	shares   []structured.SharedDeviceID
	capacity []structured.DeviceConsumedCapacity
}

// Add books the allocation of a claim, if it has one. It mirrors
// foreachAllocatedDevice of the scheduler's plugin: admin access holds nothing,
// and without consumable capacity every device is held whole.
func (l Ledger) Add(claim *resourceapi.ResourceClaim, consumableCapacity bool) {
	if claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if ptr.Deref(result.AdminAccess, false) {
			continue
		}
		h := l.holdingOf(claim, PoolID{result.Driver, result.Pool})
		device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil || !consumableCapacity {
			h.devices = append(h.devices, device)
			continue
		}
		h.shares = append(h.shares, structured.MakeSharedDeviceID(device, result.ShareID))
		if result.ConsumedCapacity != nil {
			h.capacity = append(h.capacity, structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity))
		}
	}
}

// holdingOf is for a change of what the claim holds of the pool.
func (l Ledger) holdingOf(claim *resourceapi.ResourceClaim, id PoolID) *holding {
	a := l[id]
	if a == nil {
		a = &account{holdings: make(map[types.NamespacedName]*holding)}
		l[id] = a
	}
	a.version++
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	if a.holdings[name] == nil {
		a.holdings[name] = &holding{}
	}
	return a.holdings[name]
}

// Remove takes back all that is booked for the claim, whose allocation is that
// with which it was added.
func (l Ledger) Remove(claim *resourceapi.ResourceClaim) {
	if claim.Status.Allocation == nil {
		return
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if a := l[PoolID{result.Driver, result.Pool}]; a != nil {
			a.version++
			delete(a.holdings, types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
		}
	}
}

// Version grows when what is held of the pools changes.
func (l Ledger) Version(pools []*Pool) (sum int) {
	for _, p := range pools {
		if a := l[p.ID]; a != nil {
			sum += a.version
		}
	}
	return sum
}

// State is what is held of the pools as the allocator takes it. To it, what is
// held of other pools' devices makes no difference.
func (l Ledger) State(pools []*Pool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, p := range pools {
		a := l[p.ID]
		if a == nil {
			continue
		}
		for _, h := range a.holdings {
			state.AllocatedDevices.Insert(h.devices...)
			state.AllocatedSharedDeviceIDs.Insert(h.shares...)
			for _, capacity := range h.capacity {
				state.AggregatedCapacity.Insert(capacity)
			}
		}
	}
	return state
}
