package probe

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// attribute is what selectors can read of devices of some kinds. Tests compare the lists
// below with what is published.
type attribute struct {
	names  []resourceapi.QualifiedName // always with the same value
	of     form
	words  []string // the usual values of a text; nil if it can be any
	closed bool     // it has no other values than words
	absent bool     // some devices of these kinds lack it
	// onlyIf is a flag: devices have the attribute if it is true, and only then.
	onlyIf resourceapi.QualifiedName
	kinds  []string
}

// form is the type of an attribute's value.
type form int

const (
	text64 form = iota // a string
	number
	flag
)

// Kinds of PCI functions.
const gpu, nic, nvme, pci = "gpu", "nic", "nvme", "pci"

func zoneKinds() []string     { return []string{deviceclasses.KindZone, deviceclasses.KindIsolated} }
func cacheKinds() []string    { return []string{deviceclasses.KindCache} }
func functionKinds() []string { return []string{gpu, nic, nvme, pci} }

func named(names ...resourceapi.QualifiedName) []resourceapi.QualifiedName { return names }

// attributes are all but the kind. A flag comes before the attribute that depends on it.
func attributes() []attribute {
	return slices.Concat(ofZones(), ofCaches(), ofFunctions(), ofSomeFunctions())
}

func ofZones() []attribute {
	zones := zoneKinds()
	return []attribute{
		{names: deviceclasses.NUMANodeAttributes(), of: number, absent: true, kinds: zones},
		{names: named(deviceclasses.AttributeSocket), of: number, absent: true, kinds: zones},
		{names: named(deviceclasses.AttributeL3), of: number, absent: true, kinds: zones},
		{names: named(deviceclasses.AttributeThreadsPerCore), of: number, kinds: zones},
		{names: named(deviceclasses.AttributeCoreType), words: []string{"standard", "performance", "efficient", "mixed", deviceclasses.NoCoreType}, kinds: zones},
		{names: named(deviceclasses.AttributeExclusivity), words: []string{
			deviceclasses.ExclusivityKernel, deviceclasses.ExclusivityCooperative, deviceclasses.ExclusivityNone,
		}, kinds: zones},
		{names: named(deviceclasses.AttributeMemoryTier), of: number, kinds: zones},
	}
}

func ofCaches() []attribute {
	caches := cacheKinds()
	return []attribute{
		{names: deviceclasses.NUMANodeAttributes(), of: number, absent: true, kinds: caches},
		{names: named(deviceclasses.AttributeL3), of: number, kinds: caches},
		{names: named(deviceclasses.AttributePool), words: deviceclasses.ClaimPools(), closed: true, kinds: caches},
	}
}

func ofFunctions() []attribute {
	all := functionKinds()
	return []attribute{
		{names: deviceclasses.NUMANodeAttributes(), of: number, absent: true, kinds: all},
		{names: named(deviceclasses.AttributeSocket), of: number, absent: true, kinds: all},
		{names: named(deviceattribute.StandardDeviceAttributePCIBusID), kinds: all},
		{names: named(deviceattribute.StandardDeviceAttributePCIeRoot), absent: true, kinds: all},
		{names: named("iommuGroup"), of: number, absent: true, kinds: all},
		{names: named("pcieSpeedMTps"), of: number, absent: true, kinds: all},
		{names: named("pcieWidth"), of: number, absent: true, kinds: all},
		{names: named(deviceclasses.AttributeVendorID), kinds: all},
		{names: named(deviceclasses.AttributeDeviceID), kinds: all},
		{names: named("class"), kinds: all},
		{names: named(deviceclasses.AttributeVendor), kinds: all},
		{names: named(deviceclasses.AttributeProduct), kinds: all},
		{names: named("driver"), kinds: all},
		{names: named("vfio"), of: flag, kinds: all},
		{names: named("virtualFunction"), of: flag, kinds: all},
		{names: named("physicalFunction"), absent: true, onlyIf: "virtualFunction", kinds: all},
	}
}

func ofSomeFunctions() []attribute {
	return []attribute{
		{names: named("model"), absent: true, kinds: []string{gpu, nvme}},
		{names: named("uuid"), absent: true, kinds: []string{gpu}},
		{names: named("memoryMiB"), of: number, absent: true, kinds: []string{gpu}},
		{names: named("architecture"), absent: true, kinds: []string{gpu}},
		{names: named("computeCapability"), absent: true, kinds: []string{gpu}},
		{names: named("mig"), of: flag, absent: true, kinds: []string{gpu}},
		{names: named("nvlink"), absent: true, kinds: []string{gpu}},
		{names: named("renderNode"), absent: true, kinds: []string{gpu}},
		{names: named("interface"), absent: true, kinds: []string{nic}},
		{names: named("linkMbps"), of: number, absent: true, kinds: []string{nic}},
		{names: named("rdma"), of: flag, kinds: []string{nic}},
		{names: named("rdmaDevice"), absent: true, onlyIf: "rdma", kinds: []string{nic}},
		{names: named("namespaces"), of: number, kinds: []string{nvme}},
	}
}

// ofForeign are the attributes whose names are not this driver's, so that a device of
// another driver can have them.
func ofForeign() []attribute {
	return []attribute{
		{names: named(deviceclasses.AttributeNUMANode), of: number, absent: true},
		{names: named(deviceclasses.AttributeNUMANodeNet), of: number, absent: true},
		{names: named(deviceclasses.AttributeNUMANodeAMD), of: number, absent: true},
		{names: named(deviceattribute.StandardDeviceAttributePCIBusID), absent: true},
		{names: named(deviceattribute.StandardDeviceAttributePCIeRoot), absent: true},
	}
}
