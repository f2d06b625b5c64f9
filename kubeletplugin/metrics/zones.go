package metrics

import (
	"cmp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// collectZones is what the node has, and what of it claims hold.
func (e *Exporter) collectZones(out sink, d *driver.Driver, devices []resourceapi.Device) {
	f := e.families
	zones := d.Figures().Zones
	if by, several := imbalance(zones, d.Config().ExcludedZones); several {
		out.add(f.zoneImbalance, by, cmp.Or(d.Config().ZoneOrder, deviceclasses.ZoneOrderStatic))
	}
	for _, zone := range zones {
		if zone.CPUs != (driver.Amounts{}) {
			out.addAmounts(f.zoneCPUs, zone.CPUs, zone.Device)
			out.add(f.zoneCPUs, float64(zone.CPUs.Blocked), zone.Device, "blocked")
		}
		for _, memory := range zone.Memory {
			switch {
			case memory.Amounts == driver.Amounts{}:
			case memory.Size == "":
				out.addAmounts(f.zoneMemory, memory.Amounts, zone.Device)
			default:
				out.addAmounts(f.zoneHugepages, memory.Amounts, zone.Device, memory.Size)
			}
		}
	}
	claimed := claimedDevices(d)
	functions := make(map[[2]string]int)
	for i := range devices {
		device := &devices[i]
		for _, taint := range device.Taints {
			out.add(f.taints, 1, device.Name, taint.Key, taint.Value, string(taint.Effect))
		}
		switch kind := kindOf(device); {
		case deviceclasses.IsZoneKind(kind):
			e.collectCapacity(out, device)
		case kind == deviceclasses.KindCache:
			if ways, ok := device.Capacity[deviceclasses.CapacityWays]; ok {
				out.add(f.allocatableWays, ways.Value.AsApproximateFloat64(), device.Name)
				out.add(f.cacheWays, float64(claimed.ways[device.Name]), device.Name)
			}
		case claimed.functions[device.Name]:
			functions[[2]string{kind, "claimed"}]++
		default:
			functions[[2]string{kind, "free"}]++
		}
	}
	for labels, count := range functions {
		out.add(f.functions, float64(count), labels[:]...)
	}
}

// imbalance is the value of zone_imbalance. Several is false on nodes that have none. An excluded
// zone does not count: a claim that stays there has all that is left of it.
func imbalance(zones []driver.ZoneFigures, excluded []string) (by float64, several bool) {
	var parts []float64
	for _, zone := range zones {
		if all := zone.CPUs.Claimed + zone.CPUs.Shared; all > 0 && !slices.Contains(excluded, zone.Device) {
			parts = append(parts, float64(zone.CPUs.Claimed)/float64(all))
		}
	}
	if len(parts) < 2 {
		return 0, false
	}
	return slices.Max(parts) - slices.Min(parts), true
}

// addAmounts sends what zones of all kinds have; the last label is the state.
func (s sink) addAmounts(f *family, amounts driver.Amounts, labels ...string) {
	for _, part := range []struct {
		state  string
		amount uint64
	}{{"claimed", amounts.Claimed}, {"shared", amounts.Shared}, {"reserved", amounts.Reserved}} {
		s.add(f, float64(part.amount), append(labels[:len(labels):len(labels)], part.state)...)
	}
}

func (e *Exporter) collectCapacity(out sink, device *resourceapi.Device) {
	for name, capacity := range device.Capacity {
		value := capacity.Value.AsApproximateFloat64()
		switch size, hugepages := strings.CutPrefix(string(name), deviceclasses.CapacityHugepagesPrefix); {
		case name == deviceclasses.CapacityCPU:
			out.add(e.families.allocatableCPUs, value, device.Name)
		case name == deviceclasses.CapacityMemory:
			out.add(e.families.allocatableMemory, value, device.Name)
		case hugepages:
			out.add(e.families.allocatableHugepages, value, device.Name, size)
		}
	}
}

func kindOf(device *resourceapi.Device) string {
	if kind := deviceclasses.Attribute(device.Attributes, deviceclasses.AttributeKind).StringValue; kind != nil {
		return *kind
	}
	return ""
}

// claimed is what claims hold, by the name of the device.
type claimed struct {
	ways      map[string]int
	functions map[string]bool
}

func claimedDevices(d *driver.Driver) claimed {
	all := claimed{make(map[string]int), make(map[string]bool)}
	for _, grant := range d.Grants() {
		for _, share := range grant.Shares {
			if cache := share.Cache(); cache != nil {
				all.ways[share.Device] += cache.Ways
			}
			if share.Function() != nil {
				all.functions[share.Device] = true
			}
		}
	}
	return all
}
