package numa

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// unpack writes what the reader may look at of a recorded machine, a tar.bz2 with one folder on top, to a temporary
// folder. (In an fstest.MapFS every listing of a folder walks all files.)
func unpack(t *testing.T, archive string) fs.FS {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	for entries := tar.NewReader(bzip2.NewReader(file)); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return root.FS()
		}
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(header.Name, "./"), "/")
		wanted := slices.ContainsFunc([]string{
			"proc/meminfo", "proc/zoneinfo", "sys/kernel/mm/hugepages/", "sys/devices/cpu_", cpuFolder + "/online",
			"sys/devices/virtual/memory_tiering/", nodeFolder + "/",
		}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
			strings.HasPrefix(name, cpuFolder+"/cpu") &&
				(strings.Contains(name, "/topology/") || strings.Contains(name, "/cache/") || path.Base(name) == "online")
		if header.Typeflag != tar.TypeReg || !wanted {
			continue
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			t.Fatalf("%s: %s: %v", archive, name, err)
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := root.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// snapshots are the recorded machines and what is special about each: a drawing of the machine in one line
// (zones; sockets, cores, threads of the largest core; L3s) and facts about single things.
var snapshots = map[string]struct {
	want  string
	check func(Machine) string // what is wrong; nil where the drawing says it all
}{
	"128arm-2pa2n8cluster4co": {"cpus 0-127, zones 0-3, sockets [36 8442], 128 cores of 1, 4 L3s", func(m Machine) string {
		return differ(m.Zones[3].Distances, []Distance{{0, 33}, {1, 32}, {2, 16}, {3, 10}}) + differ(len(m.Zones[0].Hugepages), 4)
	}},
	"128ia64-17n4s2c": {"cpus 0-127, zones 0-16, 64 sockets, 128 cores of 1, 0 L3s", func(m Machine) string {
		nearest, _ := m.NearestCPUZone(16)
		return differ(m.Zones[16].CPUs, cpuset.Set{}) + differ(m.Zones[16].MemoryBytes, 1020176*kib) + differ(nearest.ID, 0)
	}},
	"16amd64-4n4c-cgroup-distance-merge": {"cpus 0-15, zones 0-3, sockets [0 1 2 3], 16 cores of 1, 4 L3s", func(m Machine) string {
		return differ(m.Zones[0].Hugepages, []Hugepages{{2 << 20, 512, 512}})
	}},
	"16amd64-8n2c": {"cpus 0-15, zones 0-7, sockets [0 1 2 3 4 5 6 7], 16 cores of 1, 0 L3s", nil},
	"16em64t-4s2c2t-offlines": {"cpus 0-1,3-4,6-12,15, zones 0, sockets [0 1 2 3], 7 cores of 2, 4 L3s", func(m Machine) string {
		return differ(m.Zones[0].CPUs, m.Online) + differ(m.Cores[0].CPUs.String(), "0,8")
	}},
	"20em64t-hybrid-1p6c2t+2ca4co1t": {"cpus 0-19, zones 0, sockets [0], 14 cores of 2, 1 L3s", func(m Machine) string {
		return differ(m.Cores[5].CPUs.String(), "10-11") + differ(m.Cores[6].CPUs.String(), "12")
	}},
	"20s390-2g6s4c": {"cpus 0-19, zones 0, sockets [], 20 cores of 1, 0 L3s", func(m Machine) string {
		return differ(m.Zones[0].Distances, nil) + differ(m.Zones[0].MemoryBytes, 2053992*kib) +
			differ(m.Zones[0].Hugepages, []Hugepages{{1 << 20, 0, 0}})
	}},
	"2i386-2c-nohugepage": {"cpus 0-1, zones 0, sockets [0], 2 cores of 1, 0 L3s", func(m Machine) string {
		return differ(m.Zones[0].Hugepages, nil) + differ(m.Zones[0].MemoryBytes, 2075428*kib)
	}},
	"2pa-pcidomain32bits":             {"cpus 0-1, zones 0, sockets [0 1], 2 cores of 1, 0 L3s", nil},
	"32em64t-2n8c+dax+nvme+mic+dimms": {"cpus 0-15, zones 0-1, sockets [0 1], 16 cores of 1, 2 L3s", nil},
	"40intel64-2g2n4c+pcilocality":    {"cpus 0-39, zones 0-3, sockets [0 1 2 3], 40 cores of 1, 4 L3s", nil},
	"48amd64-4pa2n6c-sparse": {"cpus 0-47, zones 0-2,33-34,45,72-73, sockets [0 1 2 3], 48 cores of 1, 8 L3s", func(m Machine) string {
		zone, _ := m.Zone(33) // core ids repeat in the two zones of socket 1
		return differ(zone.Sockets, []int{1}) + differ(zone.CPUs.String(), "18-23") + differ(zone.Distances[5], Distance{45, 16})
	}},
	"4fake-4gr1nu1pu": {"cpus 0-3, zones 0-3, sockets [0], 4 cores of 1, 0 L3s", func(m Machine) string {
		return differ(m.Zones[1].Distances, nil) + differ(m.Cores[1].ID, unknownID) + differ(m.Zones[1].MemoryBytes, 1<<30)
	}},
	"64amd64-4s2n4ca2co": {"cpus 0-63, zones 0-7, sockets [0 1 2 3], 32 cores of 2, 8 L3s", nil},
	"96em64t-4no4pa3ca2co": {"cpus 0-95, zones 0-3, 16 sockets, 96 cores of 1, 16 L3s", func(m Machine) string {
		return differ(m.Zones[1].Sockets, []int{4, 5, 6, 7})
	}},
	"fakecpuid1f-64intel64-2p4d2n2c2t": {"cpus 0-63, zones 0-15, sockets [0 1 2 3], 32 cores of 2, 8 L3s", func(m Machine) string {
		return differ(m.Zones[10].CPUs.String(), "40-43") + differ(m.Zones[10].Distances[10], Distance{10, 10})
	}},
	"fakeheteromemtiers": {"cpus 0-5, zones 0-2,4,6,8-9, sockets [0], 6 cores of 1, 1 L3s", func(m Machine) string {
		return differ(m.Zones[6].Distances[6], Distance{9, 10}) + differ(m.Zones[6].CoreType, "")
	}},
	"fakepcilocalities": {"cpus 0-39, zones 0-3, sockets [0 1 2 3], 40 cores of 1, 0 L3s", nil},
	"memorysidecaches": {"cpus 0-79, zones 0-3, sockets [0 1], 40 cores of 2, 2 L3s", func(m Machine) string {
		return differ(m.L3s[1].CPUs, m.Zones[1].CPUs.Union(m.Zones[3].CPUs)) // one L3 over two zones
	}},
	"nvidiagpunumanodes": {"cpus 0-15,88-103, zones 0,8,250-255, sockets [0 8], 8 cores of 4, 4 L3s", func(m Machine) string {
		return differ(m.Zones[0].CPUs.String(), "0-15") + differ(m.Zones[2].MemoryBytes, 15728640*kib) // it lists 0-87
	}},
	"offline-cpu0-node0": {"cpus 4-20, zones 1, sockets [1], 8 cores of 1, 1 L3s", func(m Machine) string {
		return differ(m.Zones[0].CPUs.String(), "5,7,9,11,13,15,17,19") + differ(m.Zones[0].Distances, []Distance{{1, 10}})
	}},
}

// differ says what differs; values print alike exactly when they are alike here.
func differ(got, want any) string {
	if fmt.Sprint(got) == fmt.Sprint(want) || want == nil && fmt.Sprint(got) == "[]" {
		return ""
	}
	return fmt.Sprintf("got %v, want %v; ", got, want)
}

func draw(m Machine) string {
	var zones cpuset.Set
	var all []int
	threads := 0
	for _, zone := range m.Zones {
		zones = zones.Union(cpuset.New(zone.ID))
		all = append(all, zone.Sockets...)
		threads = max(threads, m.ThreadsPerCore(zone.ID))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	sockets := fmt.Sprintf("sockets %v", all)
	if len(all) > 8 {
		sockets = fmt.Sprintf("%d sockets", len(all))
	}
	return fmt.Sprintf("cpus %s, zones %s, %s, %d cores of %d, %d L3s", m.Online, zones, sockets, len(m.Cores), threads, len(m.L3s))
}

// checkInvariants checks what the comments of Machine promise.
func checkInvariants(t *testing.T, m Machine) {
	t.Helper()
	var seen cpuset.Set
	for _, core := range m.Cores {
		zone, ok := m.Zone(core.Zone)
		if !ok || core.CPUs.IsEmpty() || core.CPUs.Overlaps(seen) || !core.CPUs.IsSubsetOf(zone.CPUs) {
			t.Errorf("core %+v is empty, not alone or not in its zone", core)
		}
		seen = seen.Union(core.CPUs)
	}
	for _, zone := range m.Zones {
		if !zone.CPUs.IsSubsetOf(seen) || !zone.CPUs.IsSubsetOf(m.Online) {
			t.Errorf("zone %d has cpus %s that are in no core or offline", zone.ID, zone.CPUs)
		}
		if len(zone.Distances) != 0 && len(zone.Distances) != len(m.Zones) {
			t.Errorf("zone %d has %d distances to %d zones", zone.ID, len(zone.Distances), len(m.Zones))
		}
	}
}

func TestReadTakesEveryRecordedMachine(t *testing.T) {
	folder := os.Getenv("NUMA_SNAPSHOTS")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "testdata", "hwloc") // beside the repository
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar.bz2"))
	if err != nil || len(archives) == 0 {
		t.Skipf("no recorded machines in %s; NUMA_SNAPSHOTS names their folder", folder)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.bz2")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mustReadFS(t, unpack(t, archive))
			checkInvariants(t, m)
			expected, known := snapshots[name]
			if !known {
				t.Fatalf("nothing is expected of this machine yet; it is %s", draw(m))
			}
			if got := draw(m); got != expected.want {
				t.Errorf("machine is  %s\nwant %s", got, expected.want)
			} else if expected.check != nil {
				if wrong := expected.check(m); wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
	if len(archives) < len(snapshots) {
		t.Errorf("%d archives in %s, %d are expected", len(archives), folder, len(snapshots))
	}
}

func mustReadFS(t *testing.T, root fs.FS) Machine {
	t.Helper()
	m, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
