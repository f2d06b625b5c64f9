package numa

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// readAccess reads what each zone is and how CPUs reach its memory: kind, nearest zone
// with CPUs, performance, and the caches in front of the memory. If zones share CPUs, it
// believes none of what the firmware's HMAT says: the kernel does not divide that among
// emulated nodes.
func (t tree) readAccess(m *Machine) error {
	divided := slices.ContainsFunc(m.Zones, func(z Zone) bool { return z.CPUsIn != nil })
	var withCPUs cpuset.Set
	for i := range m.Zones {
		if !m.Zones[i].CPUs.IsEmpty() {
			withCPUs = withCPUs.Union(cpuset.New(m.Zones[i].ID))
		}
	}
	devices, err := t.zoneDevices(m.Zones, divided)
	if err != nil {
		return err
	}
	for i := range m.Zones {
		zone := &m.Zones[i]
		zone.Kind = devices.kind(*zone)
		if divided {
			zone.Nearest = nearestOfDivided(*zone, withCPUs)
			continue
		}
		folder, initiators, err := t.access(zone.ID, withCPUs)
		if err != nil {
			return err
		}
		if initiators.IsEmpty() {
			initiators = devices.gpuZone(zone.ID, m.PCI).Intersection(withCPUs)
		}
		zone.Nearest = nearest(*zone, initiators, withCPUs)
		if folder != "" {
			if zone.Performance, err = t.performance(folder); err != nil {
				return err
			}
		}
		if zone.SideCaches, err = t.sideCaches(zoneFolder(zone.ID) + "/memory_side_cache"); err != nil {
			return err
		}
	}
	return nil
}

// access returns the folder that describes how the best initiators with CPUs access the
// zone's memory, and the zones of these initiators. Class 1 covers only CPUs. Class 0
// may cover another device; Linux 5.2 to 5.8 have only this class. The folder is "" if
// neither class has an initiator with CPUs. Documentation/admin-guide/mm/numaperf.rst.
func (t tree) access(zone int, withCPUs cpuset.Set) (folder string, initiators cpuset.Set, err error) {
	for _, class := range []int{1, 0} {
		folder = fmt.Sprintf("%s/access%d/initiators", zoneFolder(zone), class)
		listed, err := t.numbered(folder, "node")
		if err != nil {
			return "", cpuset.Set{}, err
		}
		if listed = listed.Intersection(withCPUs); !listed.IsEmpty() {
			return folder, listed, nil
		}
	}
	return "", cpuset.Set{}, nil
}

// nearest returns the id of the nearest zone with CPUs: the zone itself if it has CPUs,
// else one of its initiators, else one of all zones with CPUs. Among several it takes
// the smallest distance, then the lowest id. It is nil if nothing tells.
func nearest(zone Zone, initiators, withCPUs cpuset.Set) *int {
	if withCPUs.Contains(zone.ID) {
		return new(zone.ID)
	}
	candidates := initiators
	if candidates.IsEmpty() {
		candidates = withCPUs
	}
	var best *Distance
	for i, distance := range zone.Distances {
		if candidates.Contains(distance.Zone) && (best == nil || distance.Value < best.Value) {
			best = &zone.Distances[i]
		}
	}
	if best != nil {
		return new(best.Zone)
	}
	if first, ok := initiators.First(); ok {
		return new(first)
	}
	return nil
}

// nearestOfDivided is nearest where zones share CPUs: memory is near the CPUs that the kernel
// lists with it.
func nearestOfDivided(zone Zone, withCPUs cpuset.Set) *int {
	if zone.CPUs.IsEmpty() && zone.CPUsIn != nil {
		return zone.CPUsIn
	}
	return nearest(zone, cpuset.Set{}, withCPUs)
}

// performance reads one access class; nil if it has no value. The kernel prints 0 if
// the firmware gives none.
func (t tree) performance(folder string) (*Performance, error) {
	var p Performance
	known := false
	for _, field := range []struct {
		value **uint64
		file  string
	}{
		{&p.ReadBandwidthMiBps, "read_bandwidth"},
		{&p.WriteBandwidthMiBps, "write_bandwidth"},
		{&p.ReadLatencyNs, "read_latency"},
		{&p.WriteLatencyNs, "write_latency"},
	} {
		value, err := t.positive(folder + "/" + field.file)
		if err != nil {
			return nil, err
		}
		*field.value = value
		known = known || value != nil
	}
	if !known {
		return nil, nil
	}
	return &p, nil
}

// sideCaches reads the index<Level> folders.
func (t tree) sideCaches(folder string) ([]SideCache, error) {
	levels, err := t.numbered(folder, "index")
	if err != nil {
		return nil, err
	}
	var caches []SideCache
	for level := range levels.All() {
		cache := SideCache{Level: level}
		if cache.SizeBytes, err = t.positive(fmt.Sprintf("%s/index%d/size", folder, level)); err != nil {
			return nil, err
		}
		if cache.LineBytes, err = t.positive(fmt.Sprintf("%s/index%d/line_size", folder, level)); err != nil {
			return nil, err
		}
		caches = append(caches, cache)
	}
	return caches, nil
}
