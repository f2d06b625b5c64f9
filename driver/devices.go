package driver

import (
	"cmp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Names of attributes and capacities. A claim has to spell a capacity exactly
// like this, without the driver's prefix.
const (
	attributeKind           resourceapi.QualifiedName = Name + "/kind"
	attributeSocket         resourceapi.QualifiedName = Name + "/socket"
	attributeThreadsPerCore resourceapi.QualifiedName = Name + "/threadsPerCore"
	attributeCoreType       resourceapi.QualifiedName = Name + "/coreType"
	attributeExclusivity    resourceapi.QualifiedName = Name + "/exclusivity"
	attributeMemoryTier     resourceapi.QualifiedName = Name + "/memoryTier"
	attributeL3             resourceapi.QualifiedName = Name + "/l3"

	capacityCPU    resourceapi.QualifiedName = "cpu"
	capacityMemory resourceapi.QualifiedName = "memory"

	// hugepagesPrefix is followed by a size, hugepages2Mi where a pod spec says
	// hugepages-2Mi: a capacity name is a C identifier.
	hugepagesPrefix = "hugepages"
)

// numaNodeAttributes are the keys under which drivers publish the NUMA node of
// a device. Carrying all of them lets one claim align devices of drivers that
// share no key.
var numaNodeAttributes = [...]resourceapi.QualifiedName{
	deviceattribute.StandardDeviceAttributeNUMANode, "dra.net/numaNode", "gpu.amd.com/numaNode",
}

const (
	kindZone = "zone"
	// defaultMemoryTier is the kernel's tier of DRAM, which is all there is on
	// a machine without tiers (include/linux/memory-tiers.h).
	defaultMemoryTier = 4
	memoryStepBytes   = 1 << 20
	// noCoreType is the core type of a zone without CPUs.
	noCoreType = "none"
)

// taintGone is the value of the taint of a device that is gone.
const taintGone = "gone"

// ZoneFaults says, by NUMA node, why no new claim may go there. Claims that are
// there stay. The words become the value of a taint, where all that a label may
// not have is a dash.
type ZoneFaults map[int]string

// Devices is what the node publishes, in the order in which the scheduler is to
// try them: one shared device for each zone, those without a PCI function beside
// them first; then the PCI functions that are selected. Zones with a fault are
// tainted.
func Devices(machine numa.Machine, config Config, faults ZoneFaults) []resourceapi.Device {
	return DevicesBeside(nil, machine, config, faults)
}

// DevicesBeside are the Devices of a node with these Strays: zones do not have
// their CPUs and memory, and PCI functions that are gone are last, tainted.
func DevicesBeside(strays []Share, machine numa.Machine, config Config, faults ZoneFaults) []resourceapi.Device {
	pci := attached.Devices(machine, config.Attached)
	zones := zonesOf(&machine, config.ZoneBy)
	slices.SortStableFunc(zones, func(a, b zone) int { return cmp.Compare(a.hasNeighbour(pci), b.hasNeighbour(pci)) })
	var devices []resourceapi.Device
	for _, zone := range zones {
		capacity := zone.capacity(&machine, config, strays)
		if node, _ := machine.Zone(zone.nodes[0]); len(capacity) == 0 || node.Kind == numa.GPUZone {
			continue // nothing a claim could hold, or memory that comes with its GPU
		}
		device := resourceapi.Device{
			Name:                     zone.device,
			Attributes:               zone.attributes(&machine, config),
			Capacity:                 capacity,
			AllowMultipleAllocations: ptr.To(true),
			Taints:                   faults.taints(zone.nodes),
		}
		if config.NodeAllocatable {
			device = withAllocatable(device)
		}
		devices = append(devices, device)
	}
	devices = append(devices, pci...)
	for i := range strays {
		if !strays[i].Function.IsZero() {
			devices = append(devices, strays[i].goneDevice())
		}
	}
	return devices
}

// hasNeighbour is 1 where one of the devices is on a NUMA node of the zone: such
// a zone is tried last, for CPUs that are near to a device are scarce.
func (z zone) hasNeighbour(devices []resourceapi.Device) int {
	for _, device := range devices {
		node := device.Attributes[deviceattribute.StandardDeviceAttributeNUMANode].IntValue
		if node != nil && slices.Contains(z.nodes, int(*node)) {
			return 1
		}
	}
	return 0
}

// Resources is the pool of the node, in as few ResourceSlices as the API allows.
// A node without devices has an empty slice, which says that the driver runs.
func Resources(nodeName string, devices []resourceapi.Device) resourceslice.DriverResources {
	devices = attached.WithCounters(devices)
	pool := resourceslice.Pool{}
	size := resourceapi.ResourceSliceMaxDevices
	if slices.ContainsFunc(devices, func(d resourceapi.Device) bool { return len(d.Taints)+len(d.ConsumesCounters) > 0 }) {
		size = resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	for part := range slices.Chunk(devices, size) {
		pool.Slices = append(pool.Slices, resourceslice.Slice{Devices: part})
	}
	for part := range slices.Chunk(attached.CounterSets(devices), resourceapi.ResourceSliceMaxCounterSets) {
		pool.Slices = append(pool.Slices, resourceslice.Slice{SharedCounters: part})
	}
	if len(pool.Slices) == 0 {
		pool.Slices = []resourceslice.Slice{{}}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{nodeName: pool}}
}

func (f ZoneFaults) taints(nodes []int) []resourceapi.DeviceTaint {
	for _, node := range nodes {
		if why, faulty := f[node]; faulty {
			return []resourceapi.DeviceTaint{{Key: attached.TaintFault, Value: labelValue(why), Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
	}
	return nil
}

// labelValue makes a label value of any text: dashes for what it may not have,
// cut to its length, and neither starting nor ending with one.
func labelValue(text string) string {
	value := strings.Map(func(r rune) rune {
		if r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, text)
	value = strings.TrimLeft(value, "-_.")
	return strings.TrimRight(value[:min(len(value), validation.LabelValueMaxLength)], "-_.")
}
