package numa

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// zoneDevices says which zones belong to devices: GPUs, CXL devices and generic
// initiators.
type zoneDevices struct {
	gpus       map[int][]string // by zone: the PCI addresses of the GPUs whose memory is the zone
	cxl        cpuset.Set
	initiators cpuset.Set // zones that access memory but have no CPU
}

// zoneDevices reads which zones belong to devices; the result is empty on most
// machines. A zone without CPUs is an initiator if the firmware calls it a generic
// initiator, or if it is the best initiator of its own memory in access class 0. That does
// not count if zones are divided.
func (t tree) zoneDevices(zones []Zone, divided bool) (devices zoneDevices, err error) {
	if devices.gpus, err = t.gpuZones(); err != nil {
		return zoneDevices{}, err
	}
	if devices.cxl, err = t.cxlZones(); err != nil {
		return zoneDevices{}, err
	}
	devices.initiators, _, err = parseFile(t, nodeFolder+"/has_generic_initiator", cpuset.Parse)
	for i := range zones {
		if err != nil || divided || !zones[i].CPUs.IsEmpty() {
			continue
		}
		var best cpuset.Set
		best, err = t.numbered(zoneFolder(zones[i].ID)+"/access0/initiators", "node")
		devices.initiators = devices.initiators.Union(best.Intersection(cpuset.New(zones[i].ID)))
	}
	return devices, err
}

// kind returns what a zone is made of. Memory of a generic initiator counts as memory
// of a GPU, because Grace shows the memory of its GPUs in this way.
func (d zoneDevices) kind(zone Zone) ZoneKind {
	hasMemory := zone.MemoryBytes != nil && *zone.MemoryBytes > 0
	switch {
	case !zone.CPUs.IsEmpty():
		return CPUZone
	case d.gpus[zone.ID] != nil:
		return GPUZone
	case d.cxl.Contains(zone.ID):
		return CXLZone
	case d.initiators.Contains(zone.ID) && hasMemory:
		return GPUZone
	case d.initiators.Contains(zone.ID):
		return InitiatorZone
	case hasMemory:
		return MemoryZone
	default:
		return EmptyZone
	}
}

// gpuZones reads which zones are memory of GPUs, as NVIDIA's driver reports it: PCI
// addresses of GPUs by zone.
func (t tree) gpuZones() (map[int][]string, error) {
	const folder = "proc/driver/nvidia/gpus"
	addresses, err := t.entries(folder)
	if err != nil {
		return nil, err
	}
	zones := map[int][]string{}
	for _, address := range addresses {
		zone, found, err := parseFile(t, folder+"/"+address+"/numa_status", parseNUMAStatus)
		if err != nil {
			return nil, err
		}
		if found {
			zones[zone] = append(zones[zone], address)
		}
	}
	return zones, nil
}

// parseNUMAStatus returns the number of the line "Node: 255"; -1 without one.
func parseNUMAStatus(text string) (int, error) {
	for line := range strings.Lines(text) {
		if node, ok := strings.CutPrefix(line, "Node:"); ok {
			return parseInt(strings.TrimSpace(node))
		}
	}
	return -1, nil
}

// gpuZone returns the zones that are local to the GPUs whose memory is the given zone.
func (d zoneDevices) gpuZone(zone int, functions []PCIFunction) (local cpuset.Set) {
	for i := range functions {
		if functions[i].Zone != nil && slices.Contains(d.gpus[zone], functions[i].Address) {
			local = local.Union(cpuset.New(*functions[i].Zone))
		}
	}
	return local
}

// cxlZones returns the zones that DAX devices of CXL regions become once their memory
// is online. It skips regions that are not below the CXL root, such as NVDIMMs.
func (t tree) cxlZones() (zones cpuset.Set, err error) {
	const folder = "sys/bus/dax/devices"
	names, err := t.entries(folder)
	if err != nil {
		return zones, err
	}
	for _, name := range names {
		device, ok := t.link(folder + "/" + name)
		if !ok || !isBelowCXL(device) {
			continue
		}
		node, found, err := parseFile(t, device+"/target_node", parseInt)
		if err != nil {
			return zones, err
		}
		if found && node >= cpuset.MaxCPUs {
			return zones, fmt.Errorf("read %s/target_node: %d is above %d", device, node, cpuset.MaxCPUs-1)
		}
		if found && node >= 0 { // -1: none
			zones = zones.Union(cpuset.New(node))
		}
	}
	return zones, nil
}

// isBelowCXL reports whether a device's path goes through a CXL root (ACPI0017) or
// through the DAX region of a CXL region.
func isBelowCXL(device string) bool {
	for ; device != "."; device = path.Dir(device) {
		if base := path.Base(device); strings.HasPrefix(base, "ACPI0017:") || isNumbered(base, "dax_region") {
			return true
		}
	}
	return false
}
