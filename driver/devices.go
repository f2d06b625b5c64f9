package driver

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// zones returns the settings for the zones of the node, which lie in these caches.
func (c Config) zones(caches *dividing.Caches) zones.Settings {
	settings := zones.Settings{
		ZoneBy: c.ZoneBy, Exclusivity: string(c.Exclusivity), Reserved: c.Reserved,
		ReservedMemory: c.ReservedMemory, NodeAllocatable: c.NodeAllocatable,
	}
	settings.L3 = caches.Zones()
	return settings
}

// Dividing returns the settings for the caches of the node; nil if it divides none.
func (c Config) Dividing() *dividing.Config {
	if c.Caches == nil {
		return nil
	}
	settings := *c.Caches
	settings.ZoneBy, settings.Reserved = c.ZoneBy, c.Reserved
	return &settings
}

// counting returns the config with NodeAllocatable set.
func (c Config) counting(allocatable bool) Config {
	c.NodeAllocatable = allocatable
	return c
}

// Devices returns what a node without claims publishes, in the order in which the
// scheduler should try the devices. Zones come first, tainted if they have a fault.
// Then come the caches and the selected PCI functions, which are more.
func Devices(machine numa.Machine, config Config, faults zones.Faults) []resourceapi.Device {
	return devices(&machine, config, dividing.CachesOf(&machine, config.Dividing(), nil), nil, cpuset.Set{}, faults)
}

// devices returns what a node with these stray shares and blocked CPUs publishes. Both
// are subtracted from the zones. PCI functions that are gone come last, with a taint.
func devices(machine *numa.Machine, config Config, caches *dividing.Caches, strays []ledger.Share, blocked cpuset.Set, faults zones.Faults) []resourceapi.Device {
	held := []zones.Held{{CPUs: blocked}}
	var gone []resourceapi.Device
	for i := range strays {
		withheld, devices := strays[i].Withheld()
		held, gone = append(held, withheld...), append(gone, devices...)
	}
	pci := attached.Devices(*machine, config.Attached)
	all := slices.Concat(zones.Devices(machine, config.zones(caches), held, faults, pci), caches.Published(), pci, gone)
	return withNUMANodeKeys(all, config.NUMANodeKeys)
}

// strays returns the shares whose device is not published as it was when the claim was
// allocated. Some hold part of a zone under another name, so the scheduler does not
// count them in that zone. Others hold a PCI function that the machine no longer has.
func strays(machine *numa.Machine, config Config, grants []ledger.Grant) (strays []ledger.Share) {
	published := zones.Of(machine, config.ZoneBy)
	for _, grant := range grants {
		for _, share := range grant.Shares {
			if share.Stray(machine, published) {
				strays = append(strays, share)
			}
		}
	}
	return strays
}

// Resources returns the pool of the node, in as few ResourceSlices as the API allows. A
// node without devices has one empty slice, which shows that the driver runs.
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
