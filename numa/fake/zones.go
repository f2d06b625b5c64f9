package fake

import (
	"fmt"
	"slices"
	"strings"
)

const plainTier = 4

// addZones adds sys/devices/system/node and memory tiers;
// Documentation/ABI/stable/sysfs-devices-node,
// Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers.
func (t tree) addZones(l layout) {
	if l.NoNUMA {
		return
	}
	hasMemory := func(z zone) bool { return z.MemoryBytes > 0 }
	t.line(nodeFolder+"/online", "%s", l.zonesThat(func(zone) bool { return true }))
	t.line(nodeFolder+"/possible", "0-%d", l.possibleZones()-1)
	if l.possibleZones() == 1 {
		t.line(nodeFolder+"/possible", "0")
	}
	t.line(nodeFolder+"/has_cpu", "%s", l.zonesThat(func(z zone) bool { return !z.cpus.IsEmpty() }))
	t.line(nodeFolder+"/has_memory", "%s", l.zonesThat(hasMemory))
	t.line(nodeFolder+"/has_normal_memory", "%s",
		l.zonesThat(func(z zone) bool { return hasMemory(z) && z.Kind != CXL && z.Kind != GPU }))
	t.line(nodeFolder+"/has_generic_initiator", "%s", l.zonesThat(func(z zone) bool { return z.Kind == Initiator || z.Kind == GPU }))
	tiers := map[int]bool{}
	for i, z := range l.zones {
		t.addZone(l, i)
		if hasMemory(z) {
			tiers[z.tier()] = true
		}
	}
	for tier := range tiers {
		t.line(fmt.Sprintf("sys/devices/virtual/memory_tiering/memory_tier%d/nodelist", tier), "%s",
			l.zonesThat(func(z zone) bool { return hasMemory(z) && z.tier() == tier }))
	}
}

func (z zone) tier() int {
	if z.Tier == 0 {
		return plainTier
	}
	return z.Tier
}

// addZone adds node<N>.
func (t tree) addZone(l layout, index int) {
	z := l.zones[index]
	folder := fmt.Sprintf("%s/node%d", nodeFolder, z.ID)
	cpus := l.domain(z.cpus)
	t.line(folder+"/cpulist", "%s", cpus.list)
	t.line(folder+"/cpumap", "%s", cpus.mask)
	t.line(folder+"/distance", "%s", strings.Trim(fmt.Sprint(l.distances()[index]), "[]"))
	t.files[folder+"/meminfo"] = l.meminfo(z)
	for _, pool := range l.hugepages(z) {
		t.addPool(hugepageFolder(folder, pool), pool)
	}
	if l.Full {
		for cpu := range z.cpus.All() {
			t.link(fmt.Sprintf("%s/cpu%d", folder, cpu), fmt.Sprintf("%s/cpu%d", cpuFolder, cpu))
			t.link(fmt.Sprintf("%s/cpu%d/node%d", cpuFolder, cpu, z.ID), folder)
		}
	}
	if z.hasCPUs && l.SideCacheBytes > 0 {
		cache := folder + "/memory_side_cache/index1/"
		t.line(cache+"size", "%d", l.SideCacheBytes)
		t.line(cache+"line_size", "64")
		t.line(cache+"indexing", "0")
		t.line(cache+"write_policy", "1")
	}
	t.addPerformance(z)
}

// addPerformance adds what the HMAT says. Class 0 is for the best initiator of any kind,
// class 1 for the best initiator with CPUs; Documentation/admin-guide/mm/numaperf.rst.
func (t tree) addPerformance(z zone) {
	if z.Performance == nil || z.MemoryBytes == 0 {
		return
	}
	for class, initiator := range []int{z.Near, z.Near} {
		if class == 0 && z.Kind == GPU {
			initiator = z.ID
		}
		access := fmt.Sprintf("%s/node%d/access%d/", nodeFolder, z.ID, class)
		t.line(access+"initiators/read_bandwidth", "%d", z.Performance.ReadMiBps)
		t.line(access+"initiators/write_bandwidth", "%d", z.Performance.WriteMiBps)
		t.line(access+"initiators/read_latency", "%d", z.Performance.ReadNs)
		t.line(access+"initiators/write_latency", "%d", z.Performance.WriteNs)
		t.link(fmt.Sprintf("%sinitiators/node%d", access, initiator), fmt.Sprintf("%s/node%d", nodeFolder, initiator))
		t.link(fmt.Sprintf("%s/node%d/access%d/targets/node%d", nodeFolder, initiator, class, z.ID), fmt.Sprintf("%s/node%d", nodeFolder, z.ID))
	}
}

// meminfo returns node<N>/meminfo, without the many lines that only statistics need.
func (l *layout) meminfo(z zone) string {
	var text strings.Builder
	total, free := z.MemoryBytes>>10, l.freeBytes(z)>>10
	for _, row := range []struct {
		name string
		kib  uint64
	}{{"MemTotal:", total}, {"MemFree:", free}, {"MemUsed:", total - free}, {"SwapCached:", 0}, {"Active:", 0}, {"Inactive:", 0}} {
		fmt.Fprintf(&text, "Node %d %-15s %8d kB\n", z.ID, row.name, row.kib)
	}
	pools := l.hugepages(z)
	i := slices.IndexFunc(pools, func(p Hugepages) bool { return p.PageBytes >= 2*mib }) // the default size
	if l.PageBytes == 64<<10 {
		i++
	}
	fmt.Fprintf(&text, "Node %d HugePages_Total: %5d\nNode %d HugePages_Free:  %5d\nNode %d HugePages_Surp:  %5d\n",
		z.ID, pools[i].Pages, z.ID, pools[i].FreePages, z.ID, 0)
	return text.String()
}

// distances returns the distance table, with rows and columns in order of zone ids.
func (l *layout) distances() [][]int {
	if l.Distances != nil {
		return l.Distances
	}
	sockets := map[int]int{}
	for n := range l.Sockets * l.ZonesPerSocket {
		sockets[l.cpuZone(n)] = n / l.ZonesPerSocket
	}
	far := 21
	if l.Make == AMD {
		far = 32
	}
	rows := make([][]int, len(l.zones))
	for i, a := range l.zones {
		for j, b := range l.zones {
			distance := far
			switch {
			case i == j:
				distance = 10
			case !a.hasCPUs || !b.hasCPUs: // one hop more than between sockets
				distance = far + 7
				if sockets[a.Near] == sockets[b.Near] {
					distance = 17
				}
			case sockets[a.ID] == sockets[b.ID]:
				distance = 12
			}
			rows[i] = append(rows[i], distance)
		}
	}
	return rows
}

// addDAX adds the files that show that a zone is memory of a CXL card or of a GPU. For
// a CXL card it is the DAX device in its region, with the driver that made it ordinary
// memory, Documentation/ABI/testing/sysfs-bus-dax. For a GPU it is NVIDIA's
// /proc/driver/nvidia.
func (t tree) addDAX(l layout) {
	regions := 0
	for _, z := range l.zones {
		switch z.Kind {
		case CXL:
			region := fmt.Sprintf("sys/devices/platform/ACPI0017:00/root0/decoder0.%d/region%d", regions, regions)
			device := fmt.Sprintf("dax%d.0", regions)
			folder := fmt.Sprintf("%s/dax_region%d/%s", region, regions, device)
			t.line(folder+"/target_node", "%d", z.ID)
			t.line(folder+"/numa_node", "%d", z.Near)
			t.line(folder+"/size", "%d", z.MemoryBytes)
			t.line(folder+"/align", "%d", 2*mib)
			t.line(region+"/size", "%#x", z.MemoryBytes)
			t.link("sys/bus/dax/devices/"+device, folder)
			t.link("sys/bus/dax/drivers/kmem/"+device, folder)
			t.link(folder+"/driver", "sys/bus/dax/drivers/kmem")
			regions++
		case GPU:
			t.line("proc/driver/nvidia/gpus/"+z.GPU+"/numa_status", "Node:      %d\nStatus:    online\nAddress:   %x\nSize:      %x",
				z.ID, z.firstPage*l.PageBytes, z.MemoryBytes)
		}
	}
}
