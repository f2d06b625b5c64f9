package zones

import (
	"cmp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Settings are what the operator and the start-up probes decide about the zones of a
// node.
type Settings struct {
	ZoneBy              string     // what one zone is, as in a NodeConfig; "" is a NUMA node
	Exclusivity         string     // how a claim's CPUs are kept from others, one of deviceclasses.Exclusivity…
	Reserved            cpuset.Set // CPUs no claim gets
	ReservedMemoryBytes uint64     // memory of each NUMA node no claim gets
	NodeAllocatable     bool       // the scheduler counts claims in the node's allocatable, if it is told how
}

// Faults says, by NUMA node, why no new claim may go there: one of
// deviceclasses.Fault…. Claims that are there stay.
type Faults map[int]string

// Held is what a claim holds under the name of a device that is not published, or no
// longer has it: it is subtracted from the zones that have it now.
type Held struct {
	Device        string
	CPUs, Mems    cpuset.Set
	MemoryBytes   uint64            // without hugepages
	HugepageBytes map[string]uint64 // by size as in "2Mi"
}

// Devices are the zones of a machine as they are published, in the order in which the
// scheduler is to try them: those without a PCI device near them first, because CPUs
// that are near to a device are scarce. Zones with a fault are tainted.
func Devices(machine *numa.Machine, settings Settings, held []Held, faults Faults, pci []resourceapi.Device) []resourceapi.Device {
	zones := Of(machine, settings.ZoneBy)
	slices.SortStableFunc(zones, func(a, b Zone) int { return cmp.Compare(a.order(pci), b.order(pci)) })
	var devices []resourceapi.Device
	for _, zone := range zones {
		capacity := zone.capacity(machine, settings, held)
		if node, _ := machine.Zone(zone.Nodes[0]); len(capacity) == 0 || node.Kind == numa.GPUZone {
			continue // nothing a claim could hold, or memory that comes with its GPU
		}
		device := resourceapi.Device{
			Name:                     zone.Device,
			Attributes:               zone.attributes(machine, settings),
			Capacity:                 capacity,
			AllowMultipleAllocations: ptr.To(true),
			Taints:                   faults.taints(zone.Nodes),
		}
		if settings.NodeAllocatable {
			device = withAllocatable(device)
		}
		devices = append(devices, device)
	}
	return devices
}

// order is 1 if one of the devices is on a NUMA node of the zone, else 0.
func (z Zone) order(devices []resourceapi.Device) int {
	near := func(device resourceapi.Device) bool {
		node := device.Attributes[deviceclasses.AttributeNUMANode].IntValue
		return node != nil && slices.Contains(z.Nodes, int(*node))
	}
	if slices.ContainsFunc(devices, near) {
		return 1
	}
	return 0
}

func (f Faults) taints(nodes []int) []resourceapi.DeviceTaint {
	for _, node := range nodes {
		if fault, faulty := f[node]; faulty {
			return []resourceapi.DeviceTaint{{Key: deviceclasses.TaintFault, Value: fault, Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
	}
	return nil
}
