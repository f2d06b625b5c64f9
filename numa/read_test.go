package numa

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// with returns the rig's files with some replaced; an empty text removes the file, and all below a path that ends
// in a slash.
func with(changes files) files {
	f := rigFiles()
	for name, text := range changes {
		if text != "" {
			f[name] = text
			continue
		}
		maps.DeleteFunc(f, func(other, _ string) bool {
			return other == name || strings.HasSuffix(name, "/") && strings.HasPrefix(other, name)
		})
	}
	return f
}

func mustRead(t *testing.T, f files) Machine {
	t.Helper()
	return mustReadFS(t, f.tree())
}

func mustParse(t *testing.T, list string) cpuset.Set {
	t.Helper()
	set, err := cpuset.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestReadDescribesTheRig(t *testing.T) {
	m := mustRead(t, rigFiles())
	if m.Online.String() != "0-15" || len(m.Zones) != 4 || len(m.Cores) != 8 || len(m.L3s) != 4 {
		t.Fatalf("online %s, %d zones, %d cores, %d L3s", m.Online, len(m.Zones), len(m.Cores), len(m.L3s))
	}
	wantZone := Zone{
		ID: 2, CPUs: mustParse(t, "8-11"), Sockets: []int{1},
		Distances:   []Distance{{0, 20}, {1, 22}, {2, 10}, {3, 12}},
		MemoryBytes: 1 << 30, WatermarkBytes: 500 * 4096,
		Hugepages: []Hugepages{{2 << 20, 8, 7}, {1 << 30, 0, 0}},
		CoreType:  StandardCores,
	}
	if got, ok := m.Zone(2); !ok || !reflect.DeepEqual(got, wantZone) {
		t.Errorf("zone 2 = %+v, %t\nwant %+v", got, ok, wantZone)
	}
	wantCore := Core{Socket: 1, Die: 0, ID: 1, Zone: 2, L3: new(2), CPUs: cpuset.New(10, 11)}
	if got := m.Cores[5]; !reflect.DeepEqual(got, wantCore) {
		t.Errorf("core 5 = %+v\nwant %+v", got, wantCore)
	}
	if got := m.L3s[3]; got != (L3{3, mustParse(t, "12-15")}) {
		t.Errorf("L3 3 = %+v", got)
	}
	if got := m.ThreadsPerCore(2); got != 2 {
		t.Errorf("ThreadsPerCore(2) = %d", got)
	}
	if _, ok := m.Zone(4); ok {
		t.Error("the machine has a zone 4")
	}
}

func TestCoresAreSiblingsHoweverTheyAreListed(t *testing.T) {
	want := mustRead(t, rigFiles())
	f := rigFiles()
	for name, list := range rigFiles() {
		if old, ok := strings.CutSuffix(name, "core_cpus_list"); ok {
			delete(f, name)
			mask := "0000000" + map[string]string{"0-1": "3", "2-3": "c"}[list]
			if mask == "0000000" { // the other cores keep a list, under its old name
				f[old+"thread_siblings_list"] = list + "\x00\x00"
			} else {
				f[old+"thread_siblings"] = mask
			}
		}
	}
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
		"online CPUs":                    {"sys/devices/system/cpu/online", func(m Machine) bool { return m.Online.String() == "0-15" }},
		"online nodes":                   {"sys/devices/system/node/online", func(m Machine) bool { return len(m.Zones) == 4 }},
		"distances":                      {"sys/devices/system/node/node1/distance", func(m Machine) bool { return m.Zones[1].Distances == nil }},
		"memory":                         {"sys/devices/system/node/node1/meminfo", func(m Machine) bool { return m.Zones[1].MemoryBytes == 0 }},
		"watermarks":                     {"proc/zoneinfo", func(m Machine) bool { return m.Zones[1].WatermarkBytes == 0 }},
		"hugepages":                      {"sys/devices/system/node/node1/hugepages/", func(m Machine) bool { return m.Zones[1].Hugepages == nil }},
		"a cache that a neighbour lists": {"sys/devices/system/cpu/cpu4/cache/", func(m Machine) bool { return *m.Cores[2].L3 == 1 }},
		"cache ids":                      {"sys/devices/system/cpu/cpu4/cache/index3/id", func(m Machine) bool { return m.L3s[1].ID == 4 && *m.Cores[2].L3 == 4 }},
		"socket":                         {"sys/devices/system/cpu/cpu4/topology/", func(m Machine) bool { return len(m.Cores) == 9 && m.Cores[2].Socket == -1 }},
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

func TestGarbageIsAnErrorThatNamesTheFile(t *testing.T) {
	for _, name := range []string{
		"sys/devices/system/cpu/online",
		"sys/devices/system/node/online",
		"sys/devices/system/node/node0/cpulist",
		"sys/devices/system/node/node0/distance",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages",
		"sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id",
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list",
		"sys/devices/system/cpu/cpu0/cache/index3/level",
		"sys/devices/system/cpu/cpu0/cache/index3/id",
		"sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
		"sys/devices/cpu_atom/cpus",
		"sys/devices/virtual/memory_tiering/memory_tier4/nodelist",
	} {
		if m, err := Read(with(files{name: "garbage"}).tree()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: Read = %d zones, %v; want an error with its name", name, len(m.Zones), err)
		}
	}
	for name, text := range map[string]string{
		"sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 12 pages",
		"proc/zoneinfo":                         "Node 0, zone Normal\n managed many",
		"sys/devices/system/node/node1/cpulist": "0-7", // node0 has 0-3
	} {
		folder := strings.TrimSuffix(name, "/cpulist")
		if _, err := Read(with(files{name: text}).tree()); err == nil || !strings.Contains(err.Error(), folder) {
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
	for i, want := range [][]Distance{{{0, 10}, {2, 30}, {3, 40}}, {{0, 31}, {2, 10}, {3, 50}}, nil} {
		if got := m.Zones[i].Distances; !reflect.DeepEqual(got, want) {
			t.Errorf("distances of zone %d = %v, want %v", m.Zones[i].ID, got, want)
		}
	}
}

func TestNearestCPUZoneOfAMemoryZone(t *testing.T) {
	m := mustRead(t, with(files{"sys/devices/system/cpu/online": "4-15"})) // node 0 has memory only
	for id, want := range map[int]int{0: 1, 1: 1, 3: 3} {
		if got, ok := m.NearestCPUZone(id); !ok || got.ID != want {
			t.Errorf("NearestCPUZone(%d) = %d, %t; want %d", id, got.ID, ok, want)
		}
	}
	m.Zones[0].Distances = nil
	for _, id := range []int{0, 9} {
		if got, ok := m.NearestCPUZone(id); ok {
			t.Errorf("NearestCPUZone(%d) = %d without a distance", id, got.ID)
		}
	}
	if zone, _ := m.Zone(0); zone.CoreType != "" || m.ThreadsPerCore(0) != 0 || zone.Sockets != nil {
		t.Errorf("a zone without cpus has %q cores in sockets %v", zone.CoreType, zone.Sockets)
	}
}

func TestHybridZonesSayWhatTheyAre(t *testing.T) {
	m := mustRead(t, with(files{"sys/devices/cpu_core/cpus": "0-5", "sys/devices/cpu_atom/cpus": "6-11"}))
	for i, want := range []CoreType{PerformanceCores, MixedCores, EfficientCores, StandardCores} {
		if got := m.Zones[i].CoreType; got != want {
			t.Errorf("zone %d has %s cores, want %s", i, got, want)
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

func TestWatermarkUsesTheMachinesPageSize(t *testing.T) {
	w := watermark{highPages: 100, managedPages: 1 << 14}
	for memoryBytes, want := range map[uint64]uint64{
		1 << 30:         100 << 16, // 64 KiB pages
		1<<26 + 1<<20:   100 << 12, // memory came between the reads
		1 << 34:         0,         // pages of 1 MiB: nonsense
		0:               0,
		(1 << 14) * 100: 0,
	} {
		if got := w.bytes(memoryBytes); got != want {
			t.Errorf("watermark of %d bytes = %d, want %d", memoryBytes, got, want)
		}
	}
	if got := (watermark{highPages: 2, managedPages: 1}).bytes(4096); got != 0 {
		t.Errorf("more high pages than pages = %d bytes", got)
	}
}

func FuzzKernelText(f *testing.F) {
	f.Add("10 20\n")
	f.Add("Node 0 MemTotal: 1 kB\n")
	f.Add("Node 0, zone Normal\n high 1\n managed 9007199254740992\n")
	f.Fuzz(func(t *testing.T, text string) {
		if row, err := parseDistances(text); err != nil && row != nil {
			t.Errorf("parseDistances = %v and %v", row, err)
		}
		if total, err := parseMemTotal(text); err != nil && total != 0 || total%kib != 0 {
			t.Errorf("parseMemTotal = %d and %v", total, err)
		}
		marks, err := parseZoneinfo(text)
		if err != nil && marks != nil {
			t.Errorf("parseZoneinfo = %v and %v", marks, err)
		}
		for _, mark := range marks {
			mark.bytes(1 << 40)
		}
	})
}
