package numa

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestReadDescribesTheRig(t *testing.T) {
	m := mustRead(t, rigFiles())
	if m.Online.String() != "0-15" || len(m.Zones) != 4 || len(m.Cores) != 8 || len(m.L3s) != 4 {
		t.Fatalf("online %s, %d zones, %d cores, %d L3s", m.Online, len(m.Zones), len(m.Cores), len(m.L3s))
	}
	wantZone := Zone{
		ID: 2, CPUs: cpuset.New(8, 9, 10, 11), Sockets: []int{1},
		Kind: CPUZone, Nearest: new(2),
		Distances:   []Distance{{0, 20}, {1, 22}, {2, 10}, {3, 12}},
		MemoryBytes: new(uint64(1 << 30)), FreeBytes: new(uint64(900000 * kib)),
		Watermarks: &Watermarks{MinBytes: 364 * 4096, LowBytes: 432 * 4096, HighBytes: 500 * 4096},
		Hugepages:  []Hugepages{{PageBytes: 2 << 20, TotalPages: 8, FreePages: new(uint64(7))}, {PageBytes: 1 << 30, FreePages: new(uint64(0))}},
		CoreType:   StandardCores,
	}
	zone, _ := m.Zone(2)
	sameJSON(t, "zone 2", zone, wantZone)
	sameJSON(t, "core 5", m.Cores[5], Core{
		Socket: new(1), Die: new(0), ID: new(1), Zone: 2, L2: new(5), L3: new(2), Type: StandardCores, CPUs: cpuset.New(10, 11),
	})
	sameJSON(t, "L2 7", m.L2s[7], Cache{7, cpuset.New(14, 15), new(uint64(2 << 20))})
	sameJSON(t, "L3 3", m.L3s[3], Cache{3, cpuset.New(12, 13, 14, 15), new(uint64(16 << 20))})
	sameJSON(t, "what else there is", Machine{m.Present, m.Online, m.Isolated, m.NoHZFull, nil, m.Possible, nil, nil, nil, m.PCI, m.Resctrl, nil},
		Machine{Present: m.Online, Online: m.Online, Possible: cpuset.New(0, 1, 2, 3)})
	if got := m.ThreadsPerCore(2); got != 2 {
		t.Errorf("ThreadsPerCore(2) = %d", got)
	}
	if _, ok := m.Zone(4); ok {
		t.Error("the machine has a zone 4")
	}
}

func TestCoresAreSiblingsHoweverTheyAreListed(t *testing.T) {
	want := mustRead(t, rigFiles())
	f := instead("core_cpus_list", func(f files, folder, list string) {
		mask := "0000000" + map[string]string{"0-1": "3", "2-3": "c"}[list]
		if mask == "0000000" { // the other cores keep a list, under its old name
			f[folder+"thread_siblings_list"] = list + "\x00\x00"
		} else {
			f[folder+"thread_siblings"] = mask
		}
	})
	if got := mustRead(t, f); !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got.Cores, want.Cores)
	}
}

func TestOfflineSiblingLeavesACoreOfOneThread(t *testing.T) {
	m := mustRead(t, with(files{"sys/devices/system/cpu/online": "0-8,10-15"}))
	zone, _ := m.Zone(2)
	if zone.CPUs.String() != "8,10-11" || m.Cores[4].CPUs != cpuset.New(8) || len(m.Cores) != 8 {
		t.Errorf("zone 2 has cpus %s, core 4 has %s of %d cores", zone.CPUs, m.Cores[4].CPUs, len(m.Cores))
	}
}

func TestMissingFilesAreAbsent(t *testing.T) {
	for name, row := range map[string]struct {
		remove string
		check  func(Machine) bool
	}{
		"online CPUs":  {"sys/devices/system/cpu/online", func(m Machine) bool { return m.Online.String() == "0-15" }},
		"online nodes": {"sys/devices/system/node/online", func(m Machine) bool { return len(m.Zones) == 4 }},
		"distances":    {"sys/devices/system/node/node1/distance", func(m Machine) bool { return m.Zones[1].Distances == nil }},
		"memory": {"sys/devices/system/node/node1/meminfo", func(m Machine) bool {
			return m.Zones[1].MemoryBytes == nil && m.Zones[1].Watermarks == nil && m.Zones[1].Kind == CPUZone
		}},
		"watermarks":                     {"proc/zoneinfo", func(m Machine) bool { return m.Zones[1].Watermarks == nil }},
		"hugepages":                      {"sys/devices/system/node/node1/hugepages/", func(m Machine) bool { return m.Zones[1].Hugepages == nil }},
		"a cache that a neighbour lists": {"sys/devices/system/cpu/cpu4/cache/", func(m Machine) bool { return *m.Cores[2].L3 == 1 }},
		"cache ids":                      {"sys/devices/system/cpu/cpu4/cache/index3/id", func(m Machine) bool { return m.L3s[1].ID == 4 && *m.Cores[2].L3 == 4 }},
		"free hugepages": {"sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", func(m Machine) bool {
			return m.Zones[1].Hugepages[0].TotalPages == 8 && m.Zones[1].Hugepages[0].FreePages == nil
		}},
		"cache sizes":     {"sys/devices/system/cpu/cpu4/cache/index3/size", func(m Machine) bool { return m.L3s[1].SizeBytes == nil }},
		"place of a core": {"sys/devices/system/cpu/cpu4/topology/", func(m Machine) bool { return len(m.Cores) == 9 && m.Cores[2].ID == nil }},
		"all nodes": {"sys/devices/system/node/", func(m Machine) bool {
			return len(m.Zones) == 1 && m.Zones[0].ID == 0 && m.Zones[0].CPUs == m.Online && m.Zones[0].Distances == nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if m := mustRead(t, with(files{row.remove: ""})); !row.check(m) {
				t.Errorf("without %s: %+v", row.remove, m)
			}
		})
	}
}

// Pages above what the administrator asked for go away with the program that has them.
func TestSurplusPagesAreNotOfThePool(t *testing.T) {
	const pool = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/"
	root := with(files{pool + "nr_hugepages": "8", pool + "surplus_hugepages": "3"})
	want := Hugepages{PageBytes: 2 << 20, TotalPages: 5, SurplusPages: 3}
	again, err := ReadHugepages(root.tree(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range [][]Hugepages{mustRead(t, root).Zones[1].Hugepages, again} {
		got[0].FreePages = nil
		if got[0] != want {
			t.Errorf("read %+v, want %+v", got[0], want)
		}
	}
	if got := mustRead(t, with(files{pool + "nr_hugepages": "2", pool + "surplus_hugepages": "3"})).Zones[1].Hugepages[0]; got.TotalPages != 0 {
		t.Errorf("a pool that changes while it is read has %d pages, want 0", got.TotalPages)
	}
}

func TestGarbageIsAnErrorThatNamesTheFile(t *testing.T) {
	for _, name := range []string{
		"sys/devices/system/cpu/online",
		"sys/devices/system/node/online",
		"sys/devices/system/node/possible",
		"sys/devices/system/node/node0/cpulist",
		"sys/devices/system/node/node0/distance",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/surplus_hugepages",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id",
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list",
		"sys/devices/system/cpu/cpu0/cache/index3/level",
		"sys/devices/system/cpu/cpu0/cache/index3/id",
		"sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
		"sys/devices/system/cpu/cpu0/cpu_capacity",
		"sys/devices/system/cpu/present",
		"sys/devices/system/cpu/isolated",
		"sys/devices/system/cpu/nohz_full",
		"sys/devices/system/node/has_generic_initiator",
		"sys/devices/system/node/node0/access1/initiators/read_latency",
		"sys/devices/system/node/node0/memory_side_cache/index1/size",
		"sys/devices/cpu_atom/cpus",
		"sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
	} {
		f := with(files{name: "garbage", "sys/devices/system/node/node0/access1/initiators/node0": "-> ../../../node0"})
		if m, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: Read = %d zones, %v; want an error with its name", name, len(m.Zones), err)
		}
	}
	for name, text := range map[string]string{
		"sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 12",
		"proc/zoneinfo":                         "Node 0, zone Normal\n managed many",
	} {
		if _, err := Read(with(files{name: text}).tree()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: Read error = %v, want one with its name", name, err)
		}
	}
	if _, err := Read(files{}.tree()); err == nil {
		t.Error("an empty root is a machine")
	}
}

func TestDistanceColumnsAreOnlineNodes(t *testing.T) {
	f := with(files{
		"sys/devices/system/node/online":         "0,2-3",
		"sys/devices/system/node/node1/":         "",
		"sys/devices/system/node/node0/distance": "10 30 40",
		"sys/devices/system/node/node2/distance": "31 99 10 50", // one column for each possible node
		"sys/devices/system/node/node3/distance": "10 20",       // nobody knows whose
	})
	m := mustRead(t, f)
	if m.Possible != cpuset.New(0, 1, 2, 3) {
		t.Errorf("possible zones %s, want node1 as well, which is offline", m.Possible)
	}
	for i, want := range [][]Distance{{{0, 10}, {2, 30}, {3, 40}}, {{0, 31}, {2, 10}, {3, 50}}, nil} {
		if got := m.Zones[i].Distances; !reflect.DeepEqual(got, want) {
			t.Errorf("distances of zone %d = %v, want %v", m.Zones[i].ID, got, want)
		}
	}
}

func TestMemoryTierIsThatOfTheNodeList(t *testing.T) {
	m := mustRead(t, with(files{
		"sys/devices/virtual/memory_tiering/memory_tier4/nodelist":  "0-1",
		"sys/devices/virtual/memory_tiering/memory_tier22/nodelist": "3",
	}))
	for i, want := range []*int{new(4), new(4), nil, new(22)} {
		if got := m.Zones[i].MemoryTier; !reflect.DeepEqual(got, want) {
			t.Errorf("memory tier of zone %d = %v, want %v", i, got, want)
		}
	}
}

func TestWatermarksUseTheMachinesPageSize(t *testing.T) {
	pages := zonePages{min: 50, low: 75, high: 100, managed: 1 << 14}
	for memoryBytes, shift := range map[uint64]int{
		1 << 30:         16, // 64 KiB pages
		1<<26 + 1<<20:   12, // memory came between the reads
		1 << 34:         0,  // pages of 1 MiB: nonsense
		0:               0,
		(1 << 14) * 100: 0,
	} {
		var want *Watermarks
		if shift > 0 {
			want = &Watermarks{50 << shift, 75 << shift, 100 << shift}
		}
		sameJSON(t, fmt.Sprintf("watermarks of %d bytes", memoryBytes), pages.bytes(memoryBytes), want)
	}
	if got := (zonePages{high: 2, managed: 1}).bytes(4096); got != nil {
		t.Errorf("more high pages than pages = %+v", got)
	}
}

func TestCPUsThatAreNotOnlineOrSetApart(t *testing.T) {
	const folder = "sys/devices/system/cpu/"
	m := mustRead(t, with(files{
		folder + "online": "0-13", folder + "present": "0-17", folder + "isolated": "4-7", folder + "nohz_full": "\x00",
	}))
	sameJSON(t, "the machine", []any{m.Online, m.Present, m.Isolated, m.NoHZFull}, []string{"0-13", "0-17", "4-7", ""})

	m = mustRead(t, with(files{folder + "online": "", folder + "cpu9/online": "0", folder + "cpu10/online": "1", folder + "present": "0-7"}))
	sameJSON(t, "a machine without lists", []any{m.Online, m.Present}, []string{"0-8,10-15", "0-8,10-15"})

	m = mustRead(t, with(files{
		folder + "online": "0-13", folder + "cpu17/topology/core_id": "0", folder + "nohz_full": "(null)",
	}))
	sameJSON(t, "a machine that tells less", []any{m.Online, m.Present, m.Isolated, m.NoHZFull}, []any{"0-13", "0-15,17", nil, nil})
}

func TestIDsThatTheFirmwareDoesNotTell(t *testing.T) {
	const folder = "sys/devices/system/cpu/cpu0/topology/"
	f := with(files{folder + "physical_package_id": "-1", folder + "die_id": "-1", folder + "core_id": "-1"})
	f["sys/devices/system/cpu/cpu2/topology/cluster_id"] = "2"
	m := mustRead(t, f)
	core := m.Cores[0]
	if core.Socket != nil || core.Die != nil || core.Cluster != nil || core.ID != nil || core.CPUs.String() != "0-1" {
		t.Errorf("core of CPU 0 = %+v", core)
	}
	sameJSON(t, "core of CPU 2", m.Cores[1], Core{ // the list of CPU 0's socket and die has CPU 2 as well
		Cluster: new(2), ID: new(1), L2: new(1), L3: new(0), Type: StandardCores, CPUs: cpuset.New(2, 3),
	})
}

// A file of a zone, core or cache that may not be read is an error; one of a device is
// absent.
func TestDeniedIsNotMissing(t *testing.T) {
	for name, fatal := range map[string]bool{
		"sys/devices/system/node/node0/cpulist":             true,
		"sys/devices/system/node/node0/meminfo":             true,
		"sys/devices/system/cpu/cpu0/topology/core_id":      true,
		"sys/devices/system/cpu/cpu0/topology/cluster_id":   true,
		"sys/devices/system/cpu/cpu0/cache/index2/size":     true,
		"sys/devices/system/node/has_generic_initiator":     false,
		"sys/bus/pci/devices/0000:00:03.0/numa_node":        false,
		"sys/bus/pci/devices/0000:00:03.0/max_link_speed":   false,
		"sys/fs/resctrl/info/L3/cbm_mask":                   false,
		"proc/driver/nvidia/gpus/0000:00:03.0/numa_status":  false,
		"sys/devices/system/node/node0/access1/initiators/": false,
	} {
		f := with(files{strings.TrimSuffix(name, "/"): "x", "sys/bus/pci/devices/0000:00:03.0/class": "0x030000"})
		m, err := Read(denying{f.tree(), strings.TrimSuffix(name, "/")})
		if got := errors.Is(err, fs.ErrPermission); got != fatal || !fatal && (err != nil || len(m.PCI) != 1) {
			t.Errorf("%s: Read = %d functions, %v", name, len(m.PCI), err)
		}
	}
}

// denying refuses to open one file.
type denying struct {
	fs.FS
	name string
}

func (d denying) Open(name string) (fs.File, error) {
	if name == d.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.FS.Open(name)
}

func TestFilesLongerThanTheBufferAreReadWhole(t *testing.T) {
	const comment = "  pagesets\n    cpu: 0\n              high:     378\n"
	f := rigFiles()
	f["proc/zoneinfo"] = strings.ReplaceAll(f["proc/zoneinfo"], "  pagesets\n", strings.Repeat(comment, 10_000))
	sameJSON(t, "the machine", mustRead(t, f), mustRead(t, rigFiles()))
	f["proc/zoneinfo"] = strings.Repeat(" ", maxFileBytes+1)
	if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), "read proc/zoneinfo: longer than") {
		t.Errorf("Read error = %v", err)
	}
}
