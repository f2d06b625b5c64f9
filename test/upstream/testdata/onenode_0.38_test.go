package onenode

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	draapi "k8s.io/dynamic-resource-allocation/api"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

func newAllocator(b *testing.B, features structured.Features, held []share, classes lister, slices []*resourceapi.ResourceSlice, cache *cel.Cache) structured.Allocator {
	b.Helper()
	state := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.DeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, share := range held {
		id := structured.MakeDeviceID(share.driver, share.pool, share.device)
		if share.consumed == nil {
			state.AllocatedDevices.Insert(id)
			continue
		}
		state.AllocatedSharedDeviceIDs.Insert(id)
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, share.consumed))
	}
	converted := make([]*draapi.ResourceSlice, len(slices))
	for i, slice := range slices {
		converted[i] = new(draapi.ResourceSlice)
		if err := draapi.Convert_v1_ResourceSlice_To_api_ResourceSlice(slice, converted[i], nil); err != nil {
			b.Fatal(err)
		}
	}
	allocator, err := structured.NewAllocator(b.Context(), features, state, classes, converted, cache)
	if err != nil {
		b.Fatal(err)
	}
	return allocator
}
