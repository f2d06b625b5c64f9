package attached

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Attributes that other code reads, in addition to deviceclasses.AttributeKind, and
// limits and values of attributes.
const (
	AttributePhysFn       resourceapi.QualifiedName = "physicalFunction"
	AttributePCIBusID                               = deviceattribute.StandardDeviceAttributePCIBusID
	attributePCIeRoot                               = deviceattribute.StandardDeviceAttributePCIeRoot
	maxStringBytes                                  = resourceapi.DeviceAttributeMaxValueLength
	noDriver                                        = "none"
	bytesPerMiB           uint64                    = 1 << 20
	firstRenderNodePrefix                           = "renderD"

	// domain is the domain of the attributes that have none in their names.
	domain = deviceclasses.DriverName
)

// Attribute is an attribute of devices.
type Attribute struct {
	Name   resourceapi.QualifiedName
	Kinds  []Kind // the kinds of devices that have it
	Absent string // when a device of these kinds lacks it; "" means never
	Means  string
	value  func(function) any // string, int or bool; nil if the device lacks the attribute
}

// Attributes returns all attributes of attached devices, in the order in which people
// read them. String values are cut to 64 bytes, the limit of the API.
func Attributes() []Attribute {
	return slices.Concat(places(), identities(), roles(), details())
}

func places() []Attribute {
	const zoneUnknown = "the kernel does not report it"
	zone := func(f function) any { return number(f.Zone) }
	const means = "NUMA node, under a key that drivers of other devices use"
	return []Attribute{
		{AttributePCIBusID, kinds(), "", "PCI address, such as 0000:3b:00.0", func(f function) any { return f.Address }},
		{attributePCIeRoot, kinds(), zoneUnknown, "PCIe root complex, such as pci0000:3a", func(f function) any { return text(f.Root) }},
		{deviceclasses.AttributeNUMANode, kinds(), zoneUnknown, "NUMA node", zone},
		{deviceclasses.AttributeNUMANodeNet, kinds(), zoneUnknown, means, zone},
		{deviceclasses.AttributeNUMANodeAMD, kinds(), zoneUnknown, means, zone},
		{deviceclasses.AttributeSocket, kinds(), "the NUMA node is unknown, or not on exactly one socket", "socket of the NUMA node", func(f function) any { return number(f.socket) }},
		{"iommuGroup", kinds(), "there is no IOMMU", "IOMMU group; only one user can have the functions of a group", func(f function) any { return number(f.IOMMU) }},
		{"pcieSpeedMTps", kinds(), "there is no PCIe link", "maximum speed of a lane, in megatransfers per second", func(f function) any { return number(f.speedMTps) }},
		{"pcieWidth", kinds(), "there is no PCIe link", "maximum number of lanes", func(f function) any { return number(f.width) }},
	}
}

func identities() []Attribute {
	return []Attribute{
		{deviceclasses.AttributeVendorID, kinds(), "", "four hexadecimal digits, such as 15b3", func(f function) any { return fmt.Sprintf("%04x", *f.Vendor) }},
		{deviceclasses.AttributeDeviceID, kinds(), "", "four hexadecimal digits, such as 1021", func(f function) any { return fmt.Sprintf("%04x", *f.PCIFunction.Device) }},
		{"class", kinds(), "", "six hexadecimal digits, such as 020000", func(f function) any { return fmt.Sprintf("%06x", *f.Class) }},
		{deviceclasses.AttributeVendor, kinds(), "", "name of vendorID in the PCI ID database, else vendorID", func(f function) any { return f.vendorName }},
		{deviceclasses.AttributeProduct, kinds(), "", "name of deviceID in the PCI ID database, else deviceID", func(f function) any { return f.product }},
	}
}

func roles() []Attribute {
	return []Attribute{
		{deviceclasses.AttributeKind, kinds(), "", "gpu, nic, nvme or pci", func(f function) any { return string(f.kind) }},
		{"driver", kinds(), "", "bound kernel driver, or none", func(f function) any {
			if f.Driver == "" {
				return noDriver
			}
			return f.Driver
		}},
		{"vfio", kinds(), "", "true if a VFIO driver is bound, for virtual machines and user-space drivers", func(f function) any { return numa.IsVFIO(f.Driver) }},
		{"virtualFunction", kinds(), "", "true for a virtual function", func(f function) any { return f.PhysFn != "" }},
		{AttributePhysFn, kinds(), "it is not a virtual function", "PCI address of its physical function", func(f function) any { return text(f.PhysFn) }},
	}
}

func details() []Attribute {
	const untold = "its driver does not report it"
	const untoldByLibrary = "NVIDIA's library does not report it"
	return []Attribute{
		{"model", []Kind{GPU, NVMe}, untold, "model name from the vendor", func(f function) any { return text(f.Model) }},
		{"uuid", []Kind{GPU}, untold, "unique ID of the GPU", func(f function) any { return text(f.UUID) }},
		{"memoryMiB", []Kind{GPU}, untold, "memory of the GPU, in MiB", func(f function) any {
			if f.MemoryBytes == nil {
				return nil
			}
			return int(*f.MemoryBytes / bytesPerMiB)
		}},
		{"architecture", []Kind{GPU}, untold, "architecture for which programs are compiled, such as gfx942", func(f function) any { return text(f.Architecture) }},
		{"computeCapability", []Kind{GPU}, untoldByLibrary, "CUDA compute capability, such as 9.0", func(f function) any { return text(f.ComputeCapability) }},
		{"mig", []Kind{GPU}, untoldByLibrary, "true if the GPU is divided into MIG instances now; the instances are not devices of this driver", func(f function) any {
			if f.MIG == nil {
				return nil
			}
			return *f.MIG
		}},
		{"nvlink", []Kind{GPU}, untoldByLibrary + ", or no NVLink leads to another GPU", "lowest PCI address of the GPUs that NVLinks connect; the same for all of them", func(f function) any { return text(f.NVLink) }},
		{"renderNode", []Kind{GPU}, untold, "name below /dev/dri, such as renderD128; can change after a reboot", func(f function) any { return first(f.DRM, firstRenderNodePrefix) }},
		{"interface", []Kind{NIC}, "its driver creates none", "first network interface, by its name on the host", func(f function) any { return first(f.Net, "") }},
		{"linkMbps", []Kind{NIC}, "no network interface is up", "speed of its fastest network interface, in Mbit/s", func(f function) any { return number(f.LinkMbps) }},
		{"rdma", []Kind{NIC}, "", "true if there is an RDMA device", func(f function) any { return len(f.Infiniband) > 0 }},
		{"rdmaDevice", []Kind{NIC}, "there is none", "first RDMA device", func(f function) any { return first(f.Infiniband, "") }},
		{"namespaces", []Kind{NVMe}, "", "number of block devices now", func(f function) any { return len(f.Namespaces) }},
	}
}

func number(value *int) any {
	if value == nil {
		return nil
	}
	return *value
}

func text(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func first(names []string, prefix string) any {
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return nil
}

func (f function) attributes() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
	for _, attribute := range Attributes() {
		if !slices.Contains(attribute.Kinds, f.kind) {
			continue
		}
		switch value := attribute.value(f).(type) {
		case string:
			attributes[attribute.Name] = resourceapi.DeviceAttribute{StringValue: ptr.To(cut(value))}
		case int:
			attributes[attribute.Name] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
		case bool:
			attributes[attribute.Name] = resourceapi.DeviceAttribute{BoolValue: &value}
		}
	}
	return attributes
}

// cut shortens a text to the limit of the API. It replaces invalid UTF-8 with question
// marks.
func cut(value string) string {
	value = strings.ToValidUTF8(value, "?")
	if len(value) <= maxStringBytes {
		return value
	}
	end := maxStringBytes
	for !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end]
}
