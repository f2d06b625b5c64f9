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

// Attributes that other code looks at, besides deviceclasses.AttributeKind.
const (
	AttributePhysFn       resourceapi.QualifiedName = domain + "/physicalFunction"
	AttributePCIBusID                               = deviceattribute.StandardDeviceAttributePCIBusID
	attributePCIeRoot                               = deviceattribute.StandardDeviceAttributePCIeRoot
	maxStringBytes                                  = resourceapi.DeviceAttributeMaxValueLength
	noDriver                                        = "none"
	bytesPerMiB           uint64                    = 1 << 20
	firstRenderNodePrefix                           = "renderD"

	// domain is that of the attributes which are this driver's own.
	domain = deviceclasses.DriverName
)

// Attribute is one that devices have.
type Attribute struct {
	Name   resourceapi.QualifiedName
	Kinds  []Kind // of the devices that have it
	Absent string // when a device of these kinds does not; "" for never
	Means  string
	value  func(function) any // string, int or bool; nil where it is absent
}

// Attributes is all that attached devices have, in the order in which people
// read it. Values of strings are cut to the 64 bytes that the API takes.
func Attributes() []Attribute {
	return slices.Concat(places(), identities(), roles(), details())
}

func places() []Attribute {
	const zoneUnknown = "the kernel does not tell"
	zone := func(f function) any { return number(f.Zone) }
	const means = "NUMA node, under the key that drivers of other devices use"
	return []Attribute{
		{AttributePCIBusID, kinds(), "", "PCI address, 0000:3b:00.0", func(f function) any { return f.Address }},
		{attributePCIeRoot, kinds(), zoneUnknown, "PCIe root complex, pci0000:3a", func(f function) any { return text(f.Root) }},
		{deviceclasses.AttributeNUMANode, kinds(), zoneUnknown, "NUMA node", zone},
		{deviceclasses.AttributeNUMANodeNet, kinds(), zoneUnknown, means, zone},
		{deviceclasses.AttributeNUMANodeAMD, kinds(), zoneUnknown, means, zone},
		{deviceclasses.AttributeSocket, kinds(), "the NUMA node is unknown, or on several sockets", "socket of that NUMA node", func(f function) any { return number(f.socket) }},
		{domain + "/iommuGroup", kinds(), "there is no IOMMU", "IOMMU group, whose functions only one user can have", func(f function) any { return number(f.IOMMU) }},
		{domain + "/pcieSpeedMTps", kinds(), "there is no PCIe link", "megatransfers a second of a lane, at best", func(f function) any { return number(f.speedMTps) }},
		{domain + "/pcieWidth", kinds(), "there is no PCIe link", "lanes, at best", func(f function) any { return number(f.width) }},
	}
}

func identities() []Attribute {
	return []Attribute{
		{domain + "/vendorID", kinds(), "", "four hexadecimal digits, 15b3", func(f function) any { return fmt.Sprintf("%04x", *f.Vendor) }},
		{domain + "/deviceID", kinds(), "", "four hexadecimal digits, 1021", func(f function) any { return fmt.Sprintf("%04x", *f.PCIFunction.Device) }},
		{domain + "/class", kinds(), "", "six hexadecimal digits, 020000", func(f function) any { return fmt.Sprintf("%06x", *f.Class) }},
		{domain + "/vendor", kinds(), "", "name of vendorID in the PCI ID database, else vendorID", func(f function) any { return f.vendorName }},
		{domain + "/product", kinds(), "", "name of deviceID in the PCI ID database, else deviceID", func(f function) any { return f.product }},
	}
}

func roles() []Attribute {
	return []Attribute{
		{deviceclasses.AttributeKind, kinds(), "", "gpu, nic, nvme or pci", func(f function) any { return string(f.kind) }},
		{domain + "/driver", kinds(), "", "kernel driver that is bound, else none", func(f function) any {
			if f.Driver == "" {
				return noDriver
			}
			return f.Driver
		}},
		{domain + "/vfio", kinds(), "", "a VFIO driver is bound, for virtual machines and drivers in user space", func(f function) any { return numa.IsVFIO(f.Driver) }},
		{domain + "/virtualFunction", kinds(), "", "is a virtual function", func(f function) any { return f.PhysFn != "" }},
		{AttributePhysFn, kinds(), "it is no virtual function", "PCI address of its physical function", func(f function) any { return text(f.PhysFn) }},
	}
}

func details() []Attribute {
	const untold = "the driver does not tell"
	const untoldByLibrary = "NVIDIA's library does not tell"
	return []Attribute{
		{domain + "/model", []Kind{GPU, NVMe}, untold, "name that the maker gave it", func(f function) any { return text(f.Model) }},
		{domain + "/uuid", []Kind{GPU}, untold, "of this one piece", func(f function) any { return text(f.UUID) }},
		{domain + "/memoryMiB", []Kind{GPU}, untold, "its own memory", func(f function) any {
			if f.MemoryBytes == nil {
				return nil
			}
			return int(*f.MemoryBytes / bytesPerMiB)
		}},
		{domain + "/architecture", []Kind{GPU}, untold, "what programs are compiled for, gfx942", func(f function) any { return text(f.Architecture) }},
		{domain + "/computeCapability", []Kind{GPU}, untoldByLibrary, "what NVIDIA's programs are compiled for, 9.0", func(f function) any { return text(f.ComputeCapability) }},
		{domain + "/mig", []Kind{GPU}, untoldByLibrary, "is divided into instances now, which are no devices of this driver", func(f function) any {
			if f.MIG == nil {
				return nil
			}
			return *f.MIG
		}},
		{domain + "/nvlink", []Kind{GPU}, untoldByLibrary, "PCI address of the first of the GPUs that NVLinks connect: the same for all of them", func(f function) any { return text(f.NVLink) }},
		{domain + "/renderNode", []Kind{GPU}, untold, "name below /dev/dri, renderD128; other after a reboot perhaps", func(f function) any { return first(f.DRM, firstRenderNodePrefix) }},
		{domain + "/interface", []Kind{NIC}, "the driver makes none", "network interface of the host, the first one", func(f function) any { return first(f.Net, "") }},
		{domain + "/linkMbps", []Kind{NIC}, "no network interface is up", "speed of its fastest network interface", func(f function) any { return number(f.LinkMbps) }},
		{domain + "/rdma", []Kind{NIC}, "", "there is an RDMA device", func(f function) any { return len(f.Infiniband) > 0 }},
		{domain + "/rdmaDevice", []Kind{NIC}, "there is none", "RDMA device, the first one", func(f function) any { return first(f.Infiniband, "") }},
		{domain + "/namespaces", []Kind{NVMe}, "", "how many block devices it has now", func(f function) any { return len(f.Namespaces) }},
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

// cut makes a text short enough, and what is no UTF-8 a question mark.
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
