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
		ReservedMemory: c.ReservedMemory, NodeAllocatable: c.NodeAllocatable, NUMANodeLists: c.NUMANodeLists, Groups: c.Groups, MadeUp: c.MadeUp,
		Excluded: c.ExcludedZones,
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

// with returns the config with these gates.
func (c Config) with(gates Gates) Config {
	c.Gates = gates
	return c
}

// Devices returns what a node without claims publishes, in the order in which the
// scheduler should try the devices. Zones come first, tainted if they have a fault.
// Then come the caches and the selected PCI functions, which are more.
func Devices(machine numa.Machine, config Config, faults zones.Faults) []resourceapi.Device {
	return devices(&machine, config, dividing.CachesOf(&machine, config.Dividing(), nil), holdings{}, faults)
}

// Zones returns the zones with CPUs that the node publishes, in their order, if claims have taken
// some CPUs.
func Zones(machine numa.Machine, config Config, taken cpuset.Set) (list []zones.Zone) {
	all := zones.Of(&machine, config.ZoneBy)
	caches := dividing.CachesOf(&machine, config.Dividing(), nil)
	for _, device := range devices(&machine, config, caches, holdings{taken: taken}, nil) {
		if zone := zones.Named(all, device.Name); zone != nil && !zone.CPUs.IsSubsetOf(config.Reserved) {
			list = append(list, *zone)
		}
	}
	return list
}

// holdings are what a node has not left for claims. The strays and what is blocked are
// subtracted from the zones; other CPUs that claims have only change the order of zones.
type holdings struct {
	strays  []ledger.Share
	blocked cpuset.Set
	taken   cpuset.Set // by claims
}

// devices returns what a node with these holdings publishes. PCI functions that are gone come
// last, with a taint.
func devices(machine *numa.Machine, config Config, caches *dividing.Caches, holds holdings, faults zones.Faults) []resourceapi.Device {
	held := []zones.Held{{CPUs: holds.blocked}}
	var gone []resourceapi.Device
	for i := range holds.strays {
		withheld, devices := holds.strays[i].Withheld()
		held, gone = append(held, withheld...), append(gone, devices...)
	}
	pci := attached.Devices(*machine, config.Attached)
	shared := zones.Devices(machine, config.zones(caches), held, faults)
	taken := config.Reserved.Union(holds.blocked).Union(holds.taken)
	zones.Sort(shared, zones.Of(machine, config.ZoneBy), pci, taken, config.ZoneOrder)
	all := slices.Concat(shared, caches.Published(), pci, gone)
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
	if slices.ContainsFunc(devices, func(d resourceapi.Device) bool { return len(d.Taints)+len(d.ConsumesCounters) > 0 || HasList(d) }) {
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
