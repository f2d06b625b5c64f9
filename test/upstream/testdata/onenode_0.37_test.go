package onenode

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

func newAllocator(b *testing.B, features structured.Features, held []share, classes lister, slices []*resourceapi.ResourceSlice, cache *cel.Cache) structured.Allocator {
	b.Helper()
	state := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, share := range held {
		id := structured.MakeDeviceID(share.driver, share.pool, share.device)
		if share.consumed == nil {
			state.AllocatedDevices.Insert(id)
			continue
		}
		state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, &share.uid))
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, share.consumed))
	}
	allocator, err := structured.NewAllocator(b.Context(), features, state, classes, slices, cache)
	if err != nil {
		b.Fatal(err)
	}
	return allocator
}
