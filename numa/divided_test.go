package numa

import (
	"fmt"
	"testing"
)

// divided is the rig with numa=fake=8: two nodes for each node of the machine. Linux lists the
// CPUs of a node with both (numa_add_cpu in mm/numa_emulation.c), and leaves HMAT as it is, so
// half of the nodes have none.
func divided() files {
	f := with(files{
		"sys/devices/system/node/": "", "sys/devices/system/node/online": "0-7", "sys/devices/system/node/possible": "0-7",
	})
	for node := range 8 {
		folder := fmt.Sprintf("sys/devices/system/node/node%d/", node)
		f[folder+"cpulist"] = fmt.Sprintf("%d-%d", node/2*4, node/2*4+3)
		f[folder+"meminfo"] = fmt.Sprintf("Node %d MemTotal:  524288 kB", node)
		for other := range 8 {
			distance := 20
			if node/2 == other/2 {
				distance = 10
			}
			f[folder+"distance"] += fmt.Sprintf("%d ", distance)
		}
	}
	// What the firmware says of the machine's node 1, which is the CPUs 4-7, is said of half
	// of its node 0.
	f["sys/devices/system/node/node1/access0/initiators/node1/"] = ""
	f["sys/devices/system/node/node1/access0/initiators/read_latency"] = "50"
	f["sys/devices/system/node/node1/memory_side_cache/index1/size"] = "1024"
	return f
}

func TestCPUsOfEmulatedNodesAreInTheLowestOne(t *testing.T) {
	m := mustRead(t, divided())
	memory := uint64(0)
	for i, zone := range m.Zones {
		memory += *zone.MemoryBytes
		want := "[]"
		owner := i / 2 * 2
		if i == owner {
			want = fmt.Sprintf("[%d-%d]", i/2*4, i/2*4+3)
		}
		if got := fmt.Sprintf("[%s]", zone.CPUs); got != want {
			t.Errorf("zone %d has CPUs %s, want %s", i, got, want)
		}
		if i == owner && (zone.CPUsIn != nil || zone.Kind != CPUZone || *zone.Nearest != i) ||
			i != owner && (zone.CPUsIn == nil || *zone.CPUsIn != owner || zone.Kind != MemoryZone || *zone.Nearest != owner) {
			t.Errorf("zone %d: %+v", i, zone)
		}
		if zone.Performance != nil || zone.SideCaches != nil {
			t.Errorf("zone %d has what HMAT says of another: %+v", i, zone)
		}
	}
	if memory != 4<<30 || len(m.Cores) != 8 {
		t.Errorf("%d bytes, %d cores", memory, len(m.Cores))
	}
}

// Firmware of a recorded machine lists one CPU in a second node as well.
func TestNodeKeepsTheCPUsThatNoOtherNodeHas(t *testing.T) {
	m := mustRead(t, with(files{"sys/devices/system/node/node2/cpulist": "0,8-11"}))
	if zone, _ := m.Zone(2); zone.CPUs.String() != "8-11" || *zone.CPUsIn != 0 || zone.Kind != CPUZone || *zone.Nearest != 2 {
		t.Errorf("zone 2: %+v", zone)
	}
}

func TestCacheSizeIsReadLeniently(t *testing.T) {
	for text, want := range map[string]uint64{"33M": 33 << 20, "1280K": 1280 << 10, "garbage": 0, "99999999999999999999K": 0, "12": 0} {
		m := mustRead(t, with(files{"sys/devices/system/cpu/cpu0/cache/index3/size": text}))
		if size := m.L3s[0].SizeBytes; want == 0 && size != nil || want != 0 && (size == nil || *size != want) {
			t.Errorf("%s: %v, want %d", text, size, want)
		}
	}
}

// On s390x, the kernel numbers the sockets of each book from 0.
func TestSocketsWhoseNumbersRepeatAreToldApart(t *testing.T) {
	f := rigFiles()
	for cpu := range 16 {
		f[fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu)] = "0"
	}
	m := mustRead(t, f)
	for i, want := range []int{0, 0, 1, 1} {
		if got := m.Zones[i].Sockets; len(got) != 1 || got[0] != want {
			t.Errorf("zone %d is in the sockets %v, want %d", i, got, want)
		}
	}
	for _, core := range m.Cores {
		if *core.Socket != core.Zone/2 {
			t.Errorf("core %+v of zone %d is in socket %d", core, core.Zone, *core.Socket)
		}
	}
}

func TestCPUsOfANodeAreItsLinksIfNothingListsThem(t *testing.T) {
	m := mustRead(t, with(files{
		"sys/devices/system/node/node2/cpulist": "", "sys/devices/system/node/node2/cpu8/x": "1", "sys/devices/system/node/node2/cpu10/x": "1",
	}))
	if zone, _ := m.Zone(2); zone.CPUs.String() != "8,10" {
		t.Errorf("zone 2 has the CPUs %s", zone.CPUs)
	}
}
