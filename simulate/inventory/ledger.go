package inventory

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// Ledger is what claims hold, by pool.
type Ledger map[PoolID]*account

// account is what claims hold of a pool. Its version grows with every change.
type account struct {
	version  int
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
		id := PoolID{result.Driver, result.Pool}
		if l[id] == nil {
			l[id] = &account{}
		}
		a := l[id]
		a.version++
		device := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		if result.ShareID == nil || !consumableCapacity {
			a.devices = append(a.devices, device)
			continue
		}
		a.shares = append(a.shares, structured.MakeSharedDeviceID(device, result.ShareID))
		if result.ConsumedCapacity != nil {
			a.capacity = append(a.capacity, structured.NewDeviceConsumedCapacity(device, result.ConsumedCapacity))
		}
	}
}

// Version changes when what is held of the pools does.
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
		state.AllocatedDevices.Insert(a.devices...)
		state.AllocatedSharedDeviceIDs.Insert(a.shares...)
		for _, capacity := range a.capacity {
			state.AggregatedCapacity.Insert(capacity)
		}
	}
	return state
}
