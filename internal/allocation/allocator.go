// Package allocation is the door to the libraries of the scheduler: its allocator of
// devices (k8s.io/dynamic-resource-allocation/structured), its selectors
// (k8s.io/dynamic-resource-allocation/cel), and cel-go, in which selectors are written.
// Nothing else imports them, so a version of Kubernetes that changes them changes this
// package alone. It takes and returns objects of the API, and decides nothing.
//
// What later versions convert before they use it has a type here: Slices and Device. Make
// them once, and outside of what is measured, as the scheduler does.
package allocation

import (
	"context"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Features are the features of the scheduler that change what is allocated.
type Features = structured.Features

// DefaultFeatures returns those that the scheduler of Kubernetes 1.37 has by default.
func DefaultFeatures() Features {
	return Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
	}
}

// DeviceID identifies a device in a cluster.
type DeviceID = structured.DeviceID

// MakeDeviceID returns the ID of a device.
func MakeDeviceID(driver, pool, device string) DeviceID {
	return structured.MakeDeviceID(driver, pool, device)
}

// Share is a part of a device that a claim holds.
type Share struct {
	Device DeviceID
	// Consumed is nil if the share takes nothing of the device's capacities.
	Consumed map[resourceapi.QualifiedName]resource.Quantity

	id       structured.SharedDeviceID
	capacity structured.DeviceConsumedCapacity
}

// NewShare returns a share with the ID that an allocation result has for it.
func NewShare(device DeviceID, id *types.UID, consumed map[resourceapi.QualifiedName]resource.Quantity) Share {
	return Share{device, consumed, structured.MakeSharedDeviceID(device, id), structured.NewDeviceConsumedCapacity(device, consumed)}
}

// State is what claims hold of devices.
type State struct{ held structured.AllocatedState }

// NewState returns the state in which no claim holds anything.
func NewState() State {
	return State{structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
}

// AddDevices adds devices that a claim holds as a whole.
func (s State) AddDevices(ids ...DeviceID) { s.held.AllocatedDevices.Insert(ids...) }

// AddShare adds a share that a claim holds.
func (s State) AddShare(share Share) {
	s.held.AllocatedSharedDeviceIDs.Insert(share.id)
	if share.Consumed != nil {
		s.held.AggregatedCapacity.Insert(share.capacity)
	}
}

// HeldWhole reports whether a claim holds the device as a whole.
func (s State) HeldWhole(id DeviceID) bool { return s.held.AllocatedDevices.Has(id) }

// Held reports whether a claim holds the device or a share of it.
func (s State) Held(id DeviceID) bool { return structured.IsDeviceAllocated(id, &s.held) }

// Consumed returns what all claims take of a capacity of the device; nil if none does.
func (s State) Consumed(id DeviceID, name resourceapi.QualifiedName) *resource.Quantity {
	return s.held.AggregatedCapacity[id][name]
}

// Slices are ResourceSlices in the form that the allocator takes.
type Slices struct{ list []*resourceapi.ResourceSlice }

// NewSlices returns the slices, which must not change any more.
func NewSlices(list []*resourceapi.ResourceSlice) Slices { return Slices{list} }

// Join returns the slices of all lists, in their order.
func Join(lists ...Slices) (all Slices) {
	for _, s := range lists {
		all.list = append(all.list, s.list...)
	}
	return all
}

// Classes finds DeviceClasses by their names.
type Classes = structured.DeviceClassLister

// Allocator allocates claims on one node after the other.
type Allocator = structured.Allocator

// ErrOnNode is in the errors of an Allocator that are about one node only. All other errors
// end the search for a node.
var ErrOnNode = structured.ErrFailedAllocationOnNode

// IsAboutPool reports whether an error of an Allocator is that a request asks for all
// devices, and that a pool is being updated or invalid. Kubernetes 1.37 gives up on the pod
// then, and 1.38 on the node only.
func IsAboutPool(err error) bool {
	return strings.Contains(err.Error(), "asks for all devices, but resource pool ")
}

// NewAllocator returns the scheduler's allocator. It compiles selectors with the cache.
func NewAllocator(ctx context.Context, features Features, held State, classes Classes, slices Slices, cache *Cache) (Allocator, error) {
	return structured.NewAllocator(ctx, features, held.held, classes, slices.list, cache.compiled)
}

// selecting are the features that change what selectors can say.
func selecting(features Features) cel.Features {
	return cel.Features{EnableConsumableCapacity: features.ConsumableCapacity, EnableListTypeAttributes: features.ListTypeAttributes}
}
