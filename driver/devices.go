package driver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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

// faultTaint is the key of the taint of a zone that no new claim may go to.
const faultTaint = Name + "/fault"

// ZoneFaults says, by NUMA node, why no new claim may go there. Claims that are
// there stay. The words become the value of a taint, where all that a label may
// not have is a dash.
type ZoneFaults map[int]string

// Devices is what the node publishes, in the order in which the scheduler is to
// try them: one shared device for each zone, those without a PCI function beside
// them first; then the PCI functions that are selected. Zones with a fault are
// tainted.
func Devices(machine numa.Machine, config Config, faults ZoneFaults) []resourceapi.Device {
	var devices []resourceapi.Device
	for _, zone := range machine.Zones {
		capacity := zoneCapacity(machine, zone, config)
		if len(capacity) == 0 || zone.Kind == numa.GPUZone {
			continue // nothing a claim could hold, or memory that comes with its GPU
		}
		device := resourceapi.Device{
			Name:                     deviceName(zone.ID),
			Attributes:               zoneAttributes(machine, zone, config),
			Capacity:                 capacity,
			AllowMultipleAllocations: ptr.To(true),
			Taints:                   faults.taints(zone.ID),
		}
		if config.NodeAllocatable {
			device = withAllocatable(device)
		}
		devices = append(devices, device)
	}
	pci := attached.Devices(machine, config.Attached)
	slices.SortStableFunc(devices, func(a, b resourceapi.Device) int { return cmp.Compare(hasNeighbour(a, pci), hasNeighbour(b, pci)) })
	return append(devices, pci...)
}

// hasNeighbour is 1 where one of the devices is on the NUMA node of the zone:
// such a zone is tried last, for CPUs that are near to a device are scarce.
func hasNeighbour(zone resourceapi.Device, devices []resourceapi.Device) int {
	const name = deviceattribute.StandardDeviceAttributeNUMANode
	for _, device := range devices {
		if node := device.Attributes[name].IntValue; node != nil && *node == *zone.Attributes[name].IntValue {
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

func (f ZoneFaults) taints(zone int) []resourceapi.DeviceTaint {
	why, faulty := f[zone]
	if !faulty {
		return nil
	}
	return []resourceapi.DeviceTaint{{Key: faultTaint, Value: labelValue(why), Effect: resourceapi.DeviceTaintEffectNoSchedule}}
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

func deviceName(zone int) string { return fmt.Sprintf("numa-%d", zone) }

func zoneAttributes(machine numa.Machine, zone numa.Zone, config Config) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	coreType, tier := string(zone.CoreType), defaultMemoryTier
	if zone.CPUs.IsEmpty() {
		coreType = noCoreType
	}
	if zone.MemoryTier != nil {
		tier = *zone.MemoryTier
	}
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		attributeKind:           stringAttribute(kindZone),
		attributeThreadsPerCore: intAttribute(machine.ThreadsPerCore(zone.ID)),
		attributeCoreType:       stringAttribute(coreType),
		attributeExclusivity:    stringAttribute(string(config.Exclusivity)),
		attributeMemoryTier:     intAttribute(tier),
	}
	for _, name := range numaNodeAttributes {
		attributes[name] = intAttribute(zone.ID)
	}
	if len(zone.Sockets) == 1 { // a zone over several sockets is on none of them
		attributes[attributeSocket] = intAttribute(zone.Sockets[0])
	}
	return attributes
}

// zoneCapacity leaves out what the zone has none of: the API refuses a step
// that is larger than the capacity.
func zoneCapacity(machine numa.Machine, zone numa.Zone, config Config) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	capacity := make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
	add := func(name resourceapi.QualifiedName, amount, step uint64, format resource.Format) {
		if steps := amount / max(step, 1); steps > 0 {
			capacity[name] = shared(steps*step, step, format)
		}
	}
	cpus := zone.CPUs.Difference(config.Reserved).Size()
	add(capacityCPU, uint64(cpus), uint64(machine.ThreadsPerCore(zone.ID)), resource.DecimalSI)

	withheld := config.ReservedMemoryBytes
	if zone.Watermarks != nil {
		withheld += zone.Watermarks.HighBytes
	}
	for _, pool := range zone.Hugepages {
		bytes := pool.TotalPages * pool.PageBytes
		withheld += bytes
		add(hugepagesName(pool.PageBytes), bytes, pool.PageBytes, resource.BinarySI)
	}
	if zone.MemoryBytes != nil {
		add(capacityMemory, *zone.MemoryBytes-min(withheld, *zone.MemoryBytes), memoryStepBytes, resource.BinarySI)
	}
	return capacity
}

// shared is a capacity of which a request that does not name it takes nothing.
// Without the policy it would take everything.
func shared(amount, step uint64, format resource.Format) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{
		Value: *resource.NewQuantity(int64(amount), format),
		RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: resource.NewQuantity(0, format),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{
				Min:  resource.NewQuantity(0, format),
				Step: resource.NewQuantity(int64(step), format),
			},
		},
	}
}

func hugepagesName(pageBytes uint64) resourceapi.QualifiedName {
	size := resource.NewQuantity(int64(pageBytes), resource.BinarySI)
	return resourceapi.QualifiedName(hugepagesPrefix + size.String())
}

func intAttribute(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
}

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}
