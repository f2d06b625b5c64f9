package attached

import (
	"cmp"
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

const (
	noDriver                     = "none"
	bytesPerMiB           uint64 = 1 << 20
	firstRenderNodePrefix        = "renderD"
)

// values returns the values of [deviceclasses.FunctionAttributes], by name.
func (f function) values() map[resourceapi.QualifiedName]any {
	return map[resourceapi.QualifiedName]any{
		deviceclasses.AttributePCIBusID:          f.Address,
		deviceclasses.AttributePCIeRoot:          f.Root,
		deviceclasses.AttributeNUMANode:          f.Zone,
		deviceclasses.AttributeSocket:            f.socket,
		deviceclasses.AttributeIOMMUGroup:        f.IOMMU,
		deviceclasses.AttributePCIeSpeed:         f.speedMTps,
		deviceclasses.AttributePCIeWidth:         f.width,
		deviceclasses.AttributeVendorID:          fmt.Sprintf("%04x", *f.Vendor),
		deviceclasses.AttributeDeviceID:          fmt.Sprintf("%04x", *f.PCIFunction.Device),
		deviceclasses.AttributeClass:             fmt.Sprintf("%06x", *f.Class),
		deviceclasses.AttributeVendor:            f.vendorName,
		deviceclasses.AttributeProduct:           f.product,
		deviceclasses.AttributeKind:              f.kind,
		deviceclasses.AttributeDriver:            cmp.Or(f.Driver, noDriver),
		deviceclasses.AttributeVFIO:              numa.IsVFIO(f.Driver),
		deviceclasses.AttributeVirtualFunction:   f.PhysFn != "",
		deviceclasses.AttributePhysicalFunction:  f.PhysFn,
		deviceclasses.AttributeModel:             f.Model,
		deviceclasses.AttributeUUID:              f.UUID,
		deviceclasses.AttributeGPUMemory:         f.memoryMiB(),
		deviceclasses.AttributeArchitecture:      f.Architecture,
		deviceclasses.AttributeComputeCapability: f.ComputeCapability,
		deviceclasses.AttributeMIG:               f.MIG,
		deviceclasses.AttributeNVLink:            f.NVLink,
		deviceclasses.AttributeRenderNode:        first(f.DRM, firstRenderNodePrefix),
		deviceclasses.AttributeInterface:         first(f.Net, ""),
		deviceclasses.AttributeLinkSpeed:         f.LinkMbps,
		deviceclasses.AttributeRDMA:              len(f.Infiniband) > 0,
		deviceclasses.AttributeRDMADevice:        first(f.Infiniband, ""),
		deviceclasses.AttributeNamespaces:        len(f.Namespaces),
	}
}

func (f function) memoryMiB() *int {
	if f.MemoryBytes == nil {
		return nil
	}
	return new(int(*f.MemoryBytes / bytesPerMiB))
}

func first(names []string, prefix string) string {
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			return name
		}
	}
	return ""
}
