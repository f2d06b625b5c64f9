package zones

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// sampleList are made-up NUMA nodes.
var sampleList = []int64{0, 1}

// ListSample returns a device with a list of NUMA nodes. An API server whose feature gate
// DRAListTypeAttributes is off drops the list, and then refuses the attribute, which has no
// value.
func ListSample() resourceapi.Device {
	return resourceapi.Device{Name: "sample", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		deviceclasses.AttributeNUMANode: {IntValues: slices.Clone(sampleList)},
	}}
}

// KeepsList reports whether the stored form of ListSample still has the list.
func KeepsList(stored resourceapi.Device) bool {
	return slices.Equal(stored.Attributes[deviceclasses.AttributeNUMANode].IntValues, sampleList)
}
