package deviceclasses

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"
)

// This file has the table of attributes. Drivers of zones, caches and PCI functions add
// the values, selectors are tried with its rows, and the pages in docs have them.

// AttributeRow is a row of the table: what devices of some kinds publish under a name.
type AttributeRow struct {
	Name   resourceapi.QualifiedName
	Kinds  []string // the kinds of devices that have it
	Type   AttributeType
	Words  []string // the usual values of a text; nil if it can be any
	Closed bool     // it has no other values than Words
	Absent string   // when a device of these kinds lacks it; "" means never
	Means  string
	// Same is the attribute that always has the same value; "" if none has.
	Same resourceapi.QualifiedName
	// OnlyIf is a flag: devices have the attribute if it is true, and only then. The row of
	// the flag comes before this one.
	OnlyIf resourceapi.QualifiedName
}

// AttributeType is the type of an attribute's value.
type AttributeType int

// The types of attributes.
const (
	Text   AttributeType = iota // string, of at most 64 bytes
	Number                      // int
	Flag                        // bool
)

// Attributes returns the table, in the order in which people read it.
func Attributes() []AttributeRow {
	return slices.Concat(ZoneAttributes(), CacheAttributes(), FunctionAttributes())
}

// ZoneAttributes returns the attributes of zones.
func ZoneAttributes() []AttributeRow {
	return of(ZoneKinds(), slices.Concat([]AttributeRow{
		{Name: AttributeKind, Words: ZoneKinds(), Means: "`zone`, or `isolated` for [isolated CPUs](#isolated-cpus); PCI functions have `gpu`, `nic`, `nvme` or `pci`, and pools of [level-3 caches](cache.md) have `cache`"},
	}, numaNode("the kernel's id of the NUMA node, or [a list](#zones-of-several-numa-nodes)", "the same", "the zone has several NUMA nodes, and the cluster no lists"), []AttributeRow{
		{Name: AttributeSocket, Type: Number, Means: "the kernel's id of the socket; for [memory without CPUs](#memory-without-cpus), that of the nearest CPUs", Absent: "the NUMA nodes of the zone are on several sockets, or the kernel does not say"},
		{Name: AttributeL3, Type: Number, Means: "the kernel's id of the level-3 cache", Absent: "the zone is not `l3-<id>`, and the node does not [divide its caches](cache.md)"},
		{Name: AttributeThreadsPerCore, Type: Number, Means: "CPUs (hardware threads) of a core: the largest number on the NUMA nodes of the zone; 0 if those have no CPUs"},
		{Name: AttributeCoreType, Words: append(CoreTypes(), NoCoreType), Means: "`standard`; on a hybrid machine `performance` or `efficient`, or `mixed` if the NUMA nodes of the zone have cores of several types; `none` if they have no CPUs"},
		{Name: AttributeExclusivity, Words: Exclusivities(), Means: "who keeps other tasks off the CPUs of claims: `kernel`, `cooperative` or `none`; see [exclusivity modes](guarantees.md#exclusivity-modes). All zones of a node have the same"},
		{Name: AttributeNearest, Type: Number, Means: "the kernel's id of the NUMA node with CPUs that is nearest: its own, or for [memory without CPUs](#memory-without-cpus) the one at the least distance", Absent: "all zones of the node have CPUs, the zone has several NUMA nodes, or two are equally near"},
		{Name: AttributeMadeUp, Type: Flag, Means: "true: the node [pretends to have this machine](chart.md#a-machine-that-there-is-not), and no container is pinned", Absent: "the machine is real"},
		{Name: AttributeMemoryTier, Type: Number, Means: "the kernel's memory tier; a lower number is faster. 4 is ordinary memory, and also the value if the kernel has no tiers. If the zone has several NUMA nodes, it is the slowest of their tiers"},
	}))
}

// CacheAttributes returns the attributes of pools of caches.
func CacheAttributes() []AttributeRow {
	return of([]string{KindCache}, slices.Concat([]AttributeRow{
		{Name: AttributeKind, Words: []string{KindCache}, Means: "`cache`"},
	}, numaNode("the kernel's id of the NUMA node", "the same id", "the cache has CPUs of several NUMA nodes"), []AttributeRow{
		{Name: AttributeL3, Type: Number, Means: "the kernel's id of the cache. Zones of such a node have it too"},
		{Name: AttributePool, Words: ClaimPools(), Closed: true, Means: "`guaranteed`, `besteffort` or `shared`"},
		{Name: AttributeDefaultMaxWays, Type: Number, Means: "up to how many ways a claim grows that names no `maxWays`", Absent: "the pool is not `besteffort`, or its claims do not grow"},
	}))
}

// FunctionAttributes returns the attributes of PCI functions.
func FunctionAttributes() []AttributeRow {
	const unreported, noLink = "the kernel does not report it", "there is no PCIe link"
	const untold, untoldByLibrary = "its driver does not report it", "NVIDIA's library does not report it"
	return slices.Concat(of(FunctionKinds(), slices.Concat([]AttributeRow{
		{Name: AttributePCIBusID, Means: "PCI address, such as 0000:3b:00.0"},
		{Name: AttributePCIeRoot, Means: "PCIe root complex, such as pci0000:3a", Absent: unreported},
	}, numaNode("NUMA node", "NUMA node", unreported), []AttributeRow{
		{Name: AttributeSocket, Type: Number, Means: "socket of the NUMA node", Absent: "the NUMA node is unknown, or not on exactly one socket"},
		{Name: AttributeIOMMUGroup, Type: Number, Means: "IOMMU group; only one user can have the functions of a group", Absent: "there is no IOMMU"},
		{Name: AttributePCIeSpeed, Type: Number, Means: "maximum speed of a lane, in megatransfers per second", Absent: noLink},
		{Name: AttributePCIeWidth, Type: Number, Means: "maximum number of lanes", Absent: noLink},
		{Name: AttributeVendorID, Means: "four hexadecimal digits, such as 15b3"},
		{Name: AttributeDeviceID, Means: "four hexadecimal digits, such as 1021"},
		{Name: AttributeClass, Means: "six hexadecimal digits, such as 020000"},
		{Name: AttributeVendor, Means: "name of vendorID in the PCI ID database, else vendorID"},
		{Name: AttributeProduct, Means: "name of deviceID in the PCI ID database, else deviceID"},
		{Name: AttributeKind, Words: FunctionKinds(), Means: "gpu, nic, nvme or pci"},
		{Name: AttributeDriver, Means: "bound kernel driver, or none"},
		{Name: AttributeVFIO, Type: Flag, Means: "true if a VFIO driver is bound, for virtual machines and user-space drivers"},
		{Name: AttributeVirtualFunction, Type: Flag, Means: "true for a virtual function"},
		{Name: AttributePhysicalFunction, OnlyIf: AttributeVirtualFunction, Means: "PCI address of its physical function", Absent: "it is not a virtual function"},
	})), of([]string{KindGPU, KindNVMe}, []AttributeRow{
		{Name: AttributeModel, Means: "model name from the vendor", Absent: untold},
	}), of([]string{KindGPU}, []AttributeRow{
		{Name: AttributeUUID, Means: "unique ID of the GPU", Absent: untold},
		{Name: AttributeGPUMemory, Type: Number, Means: "memory of the GPU, in MiB", Absent: untold},
		{Name: AttributeArchitecture, Means: "architecture for which programs are compiled, such as gfx942", Absent: untold},
		{Name: AttributeComputeCapability, Means: "CUDA compute capability, such as 9.0", Absent: untoldByLibrary},
		{Name: AttributeMIG, Type: Flag, Means: "true if the GPU is divided into MIG instances now; the instances are not devices of this driver", Absent: untoldByLibrary},
		{Name: AttributeNVLink, Means: "lowest PCI address of the GPUs that NVLinks connect; the same for all of them", Absent: untoldByLibrary + ", or no NVLink leads to another GPU"},
		{Name: AttributeRenderNode, Means: "name below /dev/dri, such as renderD128; can change after a reboot", Absent: untold},
	}), of([]string{KindNIC}, []AttributeRow{
		{Name: AttributeInterface, Means: "first network interface, by its name on the host", Absent: "its driver creates none"},
		{Name: AttributeLinkSpeed, Type: Number, Means: "speed of its fastest network interface, in Mbit/s", Absent: "no network interface is up"},
		{Name: AttributeRDMA, Type: Flag, Means: "true if there is an RDMA device"},
		{Name: AttributeRDMADevice, OnlyIf: AttributeRDMA, Means: "first RDMA device", Absent: "there is none"},
	}), of([]string{KindNVMe}, []AttributeRow{
		{Name: AttributeNamespaces, Type: Number, Means: "number of block devices now"},
	}))
}

// of returns the rows for these kinds.
func of(kinds []string, rows []AttributeRow) []AttributeRow {
	for i := range rows {
		rows[i].Kinds = kinds
	}
	return rows
}

// numaNode returns the rows of NUMANodeAttributes.
func numaNode(means, same, absent string) (rows []AttributeRow) {
	for _, name := range NUMANodeAttributes() {
		row := AttributeRow{Name: name, Type: Number, Means: means, Absent: absent}
		if name != AttributeNUMANode {
			row.Same, row.Means = AttributeNUMANode, same+", under a key that drivers of other devices use"
		}
		rows = append(rows, row)
	}
	return rows
}

// DeviceAttributes returns the attributes of a device from their values by name, of which
// AttributeKind is one. A value is a string, an int or a bool, or points to one, or a list of
// numbers. The device lacks an attribute whose value is an empty string or a nil pointer.
// Strings are cut to the limit of the API.
func DeviceAttributes(rows []AttributeRow, values map[resourceapi.QualifiedName]any) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(rows))
	kind := values[AttributeKind].(string)
	for i := range rows {
		row := &rows[i]
		if !slices.Contains(row.Kinds, kind) {
			continue
		}
		switch value := values[cmp.Or(row.Same, row.Name)].(type) {
		case string:
			if value != "" {
				attributes[row.Name] = resourceapi.DeviceAttribute{StringValue: new(cut(value))}
			}
		case int:
			attributes[row.Name] = resourceapi.DeviceAttribute{IntValue: new(int64(value))}
		case *int:
			if value != nil {
				attributes[row.Name] = resourceapi.DeviceAttribute{IntValue: new(int64(*value))}
			}
		case []int64:
			attributes[row.Name] = resourceapi.DeviceAttribute{IntValues: value}
		case bool:
			attributes[row.Name] = resourceapi.DeviceAttribute{BoolValue: &value}
		case *bool:
			if value != nil {
				attributes[row.Name] = resourceapi.DeviceAttribute{BoolValue: new(*value)}
			}
		}
	}
	return attributes
}

// cut shortens a text to the limit of the API. It replaces invalid UTF-8 with question
// marks.
func cut(value string) string {
	value = strings.ToValidUTF8(value, "?")
	end := resourceapi.DeviceAttributeMaxValueLength
	if len(value) <= end {
		return value
	}
	for !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end]
}
