package driver

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// withNUMANodeKeys returns the devices with the NUMA node under these keys and that of
// Kubernetes only. Keys nil means those of the default. A list of NUMA nodes is under as many
// of them as the API has room for: half a list would say that the device is not near the
// other NUMA nodes.
func withNUMANodeKeys(devices []resourceapi.Device, keys []resourceapi.QualifiedName) []resourceapi.Device {
	defaults := deviceclasses.NUMANodeAttributes()
	for i := range devices {
		node, has := devices[i].Attributes[deviceclasses.AttributeNUMANode]
		if !has || keys == nil && !HasList(devices[i]) {
			continue
		}
		attributes := maps.Clone(devices[i].Attributes)
		for _, key := range defaults {
			delete(attributes, key)
		}
		wanted := defaults
		if keys != nil {
			wanted = slices.Concat(defaults[:1], keys)
		}
		room := (resourceapi.ResourceSliceMaxAttributeValuesPerDevice - len(attributes)) / max(1, len(node.IntValues))
		for _, key := range wanted[:min(room, len(wanted))] {
			attributes[key] = node
		}
		devices[i].Attributes = attributes
	}
	return devices
}
