package numa

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Folders of the kernel that several readers use; Documentation/ABI/stable/sysfs-devices-{node,system-cpu}.
const (
	cpuFolder  = "sys/devices/system/cpu"
	nodeFolder = "sys/devices/system/node"
)

// Read reads the machine under root, which holds sys/ and proc/. A file that is missing or empty is absent from the
// result; one whose content makes no sense is an error that names it, and so is a machine without an online CPU.
func Read(root fs.FS) (Machine, error) {
	t := tree{root}
	var m Machine
	var err error
	if m.Online, err = t.onlineCPUs(); err != nil {
		return Machine{}, err
	}
	if m.Zones, err = t.zones(m.Online); err != nil {
		return Machine{}, err
	}
	if m.Cores, err = t.cores(m.Zones); err != nil {
		return Machine{}, err
	}
	if m.L3s, err = t.l3s(m.Online, m.Cores); err != nil {
		return Machine{}, err
	}
	linkL3s(m.Cores, m.L3s)
	for i := range m.Zones {
		m.Zones[i].Sockets = sockets(m.Cores, m.Zones[i].ID)
	}
	return m, nil
}

// onlineCPUs reads cpu/online, or without it every cpu<N> folder whose own "online" does not say 0: CPU 0 and
// machines without CPU hotplug have no such file.
func (t tree) onlineCPUs() (cpuset.Set, error) {
	online, found, err := parseFile(t, cpuFolder+"/online", cpuset.Parse)
	if err != nil {
		return cpuset.Set{}, err
	}
	if !found {
		if online, err = t.numbered(cpuFolder, "cpu"); err != nil {
			return cpuset.Set{}, err
		}
		for cpu := range online.All() {
			state, err := t.text(fmt.Sprintf("%s/cpu%d/online", cpuFolder, cpu))
			if err != nil {
				return cpuset.Set{}, err
			}
			if state == "0" {
				online = online.Difference(cpuset.New(cpu))
			}
		}
	}
	if online.IsEmpty() {
		return cpuset.Set{}, errors.New("no cpu is online in " + cpuFolder)
	}
	return online, nil
}

// zones reads what the kernel says of each online NUMA node.
func (t tree) zones(onlineCPUs cpuset.Set) ([]Zone, error) {
	online, err := t.onlineZones()
	if err != nil {
		return nil, err
	}
	var zones []Zone
	var seen cpuset.Set
	for id := range online.All() {
		zone, err := t.zone(id, online, onlineCPUs)
		if err != nil {
			return nil, err
		}
		if both := zone.CPUs.Intersection(seen); !both.IsEmpty() {
			return nil, fmt.Errorf("read %s: cpus %s are also in another node", zoneFolder(id), both)
		}
		seen = seen.Union(zone.CPUs)
		zones = append(zones, zone)
	}
	if online.IsEmpty() { // a kernel without NUMA support: all memory is one zone
		zone := Zone{CPUs: onlineCPUs}
		if err := t.readMemory(&zone, "proc/meminfo", "sys/kernel/mm/hugepages"); err != nil {
			return nil, err
		}
		zones = []Zone{zone}
	}
	return zones, t.describe(zones)
}

// zone reads the node's own folder.
func (t tree) zone(id int, onlineZones, onlineCPUs cpuset.Set) (Zone, error) {
	folder := zoneFolder(id)
	listed, err := t.set(folder+"/cpulist", folder+"/cpumap")
	if err != nil {
		return Zone{}, err
	}
	zone := Zone{ID: id, CPUs: listed.Intersection(onlineCPUs)} // some kernels list offline CPUs as well
	if zone.Distances, err = t.distances(folder+"/distance", onlineZones); err != nil {
		return Zone{}, err
	}
	err = t.readMemory(&zone, folder+"/meminfo", folder+"/hugepages")
	return zone, err
}

func zoneFolder(id int) string { return fmt.Sprintf("%s/node%d", nodeFolder, id) }

// describe adds what the kernel says of all zones in one file: kinds of cores and watermarks.
func (t tree) describe(zones []Zone) error {
	kinds, err := t.coreKinds()
	if err != nil {
		return err
	}
	marks, _, err := parseFile(t, "proc/zoneinfo", parseZoneinfo)
	if err != nil {
		return err
	}
	for i := range zones {
		zones[i].CoreType = kinds.of(zones[i].CPUs)
		zones[i].WatermarkBytes = marks[zones[i].ID].bytes(zones[i].MemoryBytes)
	}
	return nil
}

// onlineZones reads node/online, or without it takes the node<N> folders: an offline node has none. It is empty on a
// kernel without NUMA support.
func (t tree) onlineZones() (cpuset.Set, error) {
	online, found, err := parseFile(t, nodeFolder+"/online", cpuset.Parse)
	if err != nil || found {
		return online, err
	}
	return t.numbered(nodeFolder, "node")
}

// distances reads one row of the distance table. Its columns are the nodes that were online when it was printed, in
// ascending order, not the node ids. A row with as many columns as there are possible nodes is read by those; one of
// any other length says nothing about which column is whose.
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

func parseDistances(text string) ([]int, error) {
	var row []int
	for field := range strings.FieldsSeq(text) {
		distance, err := parseNumber(field)
		if err != nil {
			return nil, err
		}
		row = append(row, int(distance))
	}
	return row, nil
}

// sockets returns the known sockets of the zone's cores, ascending.
func sockets(cores []Core, zone int) []int {
	var sockets []int
	for i := range cores {
		if cores[i].Zone == zone && cores[i].Socket >= 0 {
			sockets = append(sockets, cores[i].Socket)
		}
	}
	slices.Sort(sockets)
	return slices.Compact(sockets)
}
