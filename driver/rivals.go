package driver

import (
	"maps"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Rival says what of a node another driver gives out, which may be what our claims hold.
type Rival struct{ CPUs, Memory bool }

// knownRivals are drivers whose devices do not always say that they are CPUs or memory.
var knownRivals = map[string]Rival{
	"dra.cpu":               {CPUs: true},
	"dra.memory":            {Memory: true},
	"balloons.nri.io":       {CPUs: true},
	"topology-aware.nri.io": {CPUs: true},
}

// policySuffix is the end of the names of drivers that are NRI resource policies.
const policySuffix = ".nri.io"

// RivalOf returns what the driver of a slice gives out. Its devices say so if they map a
// capacity to the cpu, memory or hugepages of the node's allocatable (KEP-5517), and those of
// an NRI resource policy if claims share them and they have a capacity of CPUs. Other
// capacities and attributes prove nothing: a GPU has memory, and drivers of networks
// publish attributes of dra.cpu, so that a claim can match on them.
func RivalOf(slice *resourceapi.ResourceSlice) (rival Rival) {
	if slice.Spec.Driver == Name || len(slice.Spec.Devices) == 0 {
		return Rival{}
	}
	rival = knownRivals[slice.Spec.Driver]
	for i := range slice.Spec.Devices {
		if strings.HasSuffix(slice.Spec.Driver, policySuffix) && sharesCPUs(&slice.Spec.Devices[i]) {
			rival.CPUs = true
		}
		for name, resource := range slice.Spec.Devices[i].NodeAllocatableResources {
			if resource.Mapping == nil {
				continue // an overhead, which is on all NUMA nodes
			}
			rival.CPUs = rival.CPUs || name == corev1.ResourceCPU
			rival.Memory = rival.Memory || name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
		}
	}
	return rival
}

// sharesCPUs reports whether claims share the device and get a part of its CPUs. The domain of
// the capacity may be any.
func sharesCPUs(device *resourceapi.Device) bool {
	if !ptr.Deref(device.AllowMultipleAllocations, false) {
		return false
	}
	for name := range device.Capacity {
		if last := path.Base(string(name)); last == "cpu" || last == "cpus" {
			return true
		}
	}
	return false
}

// WithoutMemory returns the devices without memory and hugepages, which another driver
// gives out. It leaves out zones that have nothing else. The devices stay as they are.
func WithoutMemory(devices []resourceapi.Device) (others []resourceapi.Device) {
	for _, device := range devices {
		if kind := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeKind).StringValue; kind == nil || !deviceclasses.IsZoneKind(*kind) {
			others = append(others, device)
			continue
		}
		if _, has := device.Capacity[deviceclasses.CapacityCPU]; !has {
			continue
		}
		device.Capacity = withoutMemory(device.Capacity, deviceclasses.CapacityMemory, deviceclasses.CapacityHugepagesPrefix)
		device.NodeAllocatableResources = withoutMemory(device.NodeAllocatableResources, corev1.ResourceMemory, corev1.ResourceHugePagesPrefix)
		others = append(others, device)
	}
	return others
}

// withoutMemory returns a copy without memory and hugepages.
func withoutMemory[K ~string, V any](all map[K]V, memory, hugepagesPrefix K) map[K]V {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(name K, _ V) bool {
		return name == memory || strings.HasPrefix(string(name), string(hugepagesPrefix))
	})
	return kept
}
