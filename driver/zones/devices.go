package zones

import (
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
	ZoneBy          string       // what one zone is, as in a NodeConfig; "" means a NUMA node
	Exclusivity     string       // what keeps other tasks off a claim's CPUs, one of deviceclasses.Exclusivity…
	Reserved        cpuset.Set   // CPUs that no claim gets
	ReservedMemory  Reservations // memory and hugepages that no claim gets
	Excluded        []string     // names of zones that no claim gets anything of
	Groups          []string     // as in a NodeConfig
	MadeUp          bool         // the node only pretends to have this machine
	NodeAllocatable bool         // the devices say how the scheduler counts claims in the node's allocatable
	NUMANodeLists   bool         // zones of several NUMA nodes have the list of them

	// L3 is the id of the level-3 cache of each zone with CPUs, by the name of its device,
	// on nodes that divide these caches.
	L3 map[string]int

	memoryZones bool // there are zones of memory without CPUs; Devices sets it
}

// Faults says, by NUMA node, why no new claim should go there: one of
// deviceclasses.Fault…. Claims that are already there stay.
type Faults map[int]string

// Held is what a claim holds under the name of a device that is not published any more,
// or that no longer has what the claim holds. It is subtracted from the zones that have
// it now.
type Held struct {
	Device        string // empty for CPUs that no claim has and that do not count
	CPUs, Mems    cpuset.Set
	MemoryBytes   uint64            // without hugepages
	HugepageBytes map[string]uint64 // by size as in "2Mi"
}

// Devices returns the zones of a machine as devices, in the order of [Of]. Zones with a fault
// are tainted.
func Devices(machine *numa.Machine, settings Settings, held []Held, faults Faults) []resourceapi.Device {
	rows := deviceclasses.ZoneAttributes()
	zones := Of(machine, settings.ZoneBy)
	settings.memoryZones = slices.ContainsFunc(zones, func(z Zone) bool { return z.isMemory(machine) })
	var devices []resourceapi.Device
	for _, zone := range zones {
		if slices.Contains(settings.Excluded, zone.Device) {
			continue
		}
		capacity := zone.capacity(machine, settings, held)
		if node, _ := machine.Zone(zone.Nodes[0]); len(capacity) == 0 || node.Kind == numa.GPUZone {
			continue // nothing that a claim could hold, or memory that belongs to a GPU
		}
		device := resourceapi.Device{
			Name:                     zone.Device,
			Attributes:               deviceclasses.DeviceAttributes(rows, zone.values(machine, settings)),
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

func (f Faults) taints(nodes []int) []resourceapi.DeviceTaint {
	for _, node := range nodes {
		if fault, faulty := f[node]; faulty {
			return []resourceapi.DeviceTaint{deviceclasses.FaultTaint(fault)}
		}
	}
	return nil
}
