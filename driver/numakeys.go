package driver

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// withNUMANodeKeys returns the devices with the NUMA node under these keys and that of
// Kubernetes only. Keys nil means that the devices stay as they are.
func withNUMANodeKeys(devices []resourceapi.Device, keys []resourceapi.QualifiedName) []resourceapi.Device {
	if keys == nil {
		return devices
	}
	for i := range devices {
		node, has := devices[i].Attributes[deviceclasses.AttributeNUMANode]
		if !has {
			continue
		}
		attributes := maps.Clone(devices[i].Attributes)
		for _, key := range deviceclasses.NUMANodeAttributes() {
			delete(attributes, key)
		}
		attributes[deviceclasses.AttributeNUMANode] = node
		for _, key := range keys {
			attributes[key] = node
		}
		devices[i].Attributes = attributes
	}
	return devices
}
