package numa

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// readZones reads the folders of the online NUMA nodes, and the files that describe all
// nodes.
func (t tree) readZones(m *Machine) error {
	online, err := t.onlineZones()
	if err != nil {
		return err
	}
	for id := range online.All() {
		zone, err := t.zone(id, online, m.Online)
		if err != nil {
			return err
		}
		for _, lower := range m.Zones {
			if lower.CPUs.Intersection(zone.CPUs).IsEmpty() {
				continue
			}
			zone.CPUs = zone.CPUs.Difference(lower.CPUs)
			if zone.CPUsIn == nil {
				zone.CPUsIn = new(lower.ID)
			}
		}
		m.Zones = append(m.Zones, zone)
	}
	if online.IsEmpty() { // a kernel without NUMA support: all memory is one zone
		zone := Zone{CPUs: m.Online}
		if err := t.readMemory(&zone, machineMeminfo, machineHugepages); err != nil {
			return err
		}
		m.Zones = []Zone{zone}
	}
	if m.Possible, err = t.possibleZones(m.Zones); err != nil {
		return err
	}
	if err := t.readWatermarks(m.Zones); err != nil {
		return err
	}
	return t.readMemoryTiers(m.Zones)
}

// zone reads the node's own folder.
func (t tree) zone(id int, onlineZones, onlineCPUs cpuset.Set) (Zone, error) {
	folder := zoneFolder(id)
	listed, err := t.set(folder+"/cpulist", folder+"/cpumap")
	if err != nil {
		return Zone{}, err
	}
	if listed.IsEmpty() { // a recorded machine may have only the links to its CPUs
		if listed, err = t.numbered(folder, "cpu"); err != nil {
			return Zone{}, err
		}
	}
	zone := Zone{ID: id, CPUs: listed.Intersection(onlineCPUs)} // some kernels list offline CPUs as well
	if zone.Distances, err = t.distances(folder+"/distance", onlineZones); err != nil {
		return Zone{}, err
	}
	err = t.readMemory(&zone, folder+"/meminfo", folder+"/hugepages")
	return zone, err
}

func zoneFolder(id int) string { return fmt.Sprintf("%s/node%d", nodeFolder, id) }

// possibleZones reads node/possible.
func (t tree) possibleZones(zones []Zone) (cpuset.Set, error) {
	possible, _, err := parseFile(t, nodeFolder+"/possible", cpuset.Parse)
	for i := range zones {
		possible.Insert(zones[i].ID)
	}
	return possible, err
}

// onlineZones reads node/online. Without that file it takes the node<N> folders,
// because an offline node has none. The set is empty on a kernel without NUMA support.
func (t tree) onlineZones() (cpuset.Set, error) {
	online, found, err := parseFile(t, nodeFolder+"/online", cpuset.Parse)
	if err != nil || found {
		return online, err
	}
	return t.numbered(nodeFolder, "node")
}

// distances reads one row of the distance table. Its columns are the nodes that were
// online when the kernel printed it, in ascending order, not the node ids. If the row
// has another length, but one column for each possible node, its columns are the
// possible nodes. A row of any other length is ignored, because nothing says which
// column belongs to which node.
func (t tree) distances(name string, online cpuset.Set) ([]Distance, error) {
	row, _, err := parseFile(t, name, parseDistances)
	if err != nil {
		return nil, err
	}
	columns := online
	if len(row) != online.Size() {
		if columns, _, err = parseFile(t, nodeFolder+"/possible", cpuset.Parse); err != nil {
			return nil, err
		}
	}
	if len(row) != columns.Size() {
		return nil, nil
	}
	var distances []Distance
	for id := range columns.All() {
		if online.Contains(id) {
			distances = append(distances, Distance{Zone: id, Value: row[0]})
		}
		row = row[1:]
	}
	return distances, nil
}

// parseDistances reads numbers that are separated by white space, at most one for each
// node.
func parseDistances(text string) ([]int, error) {
	var row []int
	for field := range strings.FieldsSeq(text) {
		distance, err := parseInt(field)
		if err != nil {
			return nil, err
		}
		if distance < 0 || len(row) == cpuset.MaxCPUs {
			return nil, fmt.Errorf("%d is not a distance, or the row is longer than %d", distance, cpuset.MaxCPUs)
		}
		row = append(row, distance)
	}
	return row, nil
}
