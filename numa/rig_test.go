package numa

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// files is a machine's tree as text by path; a text that starts with "-> " is a symbolic
// link.
type files map[string]string

// tree renders the files, with the newline that the kernel ends them with.
func (f files) tree() fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range f {
		root[name] = &fstest.MapFile{Data: []byte(text + "\n")}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			root[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink}
		}
	}
	return root
}

// with returns the rig's files with some replaced; an empty text removes the file, and
// all below a path that ends in a slash.
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

// instead returns the rig's files. A file whose name has the ending is left out, and
// change adds others for it.
func instead(ending string, change func(f files, folder, text string)) files {
	f := rigFiles()
	for name, text := range rigFiles() {
		if folder, ok := strings.CutSuffix(name, ending); ok {
			delete(f, name)
			change(f, folder, text)
		}
	}
	return f
}

func mustRead(t *testing.T, f files) Machine {
	t.Helper()
	return mustReadFS(t, f.tree())
}

func mustReadFS(t *testing.T, root fs.FS) Machine {
	t.Helper()
	m, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sameJSON has a short name because most tests of this package compare with it.
var sameJSON = testfiles.SameJSON

// rigFiles is the default node of the test cluster: 2 sockets × 2 dies × 2 cores × 2
// threads on 4 NUMA nodes of 1 GiB with one L3 each. CPU n is in node n/4; its sibling is
// n^1.
func rigFiles() files {
	f := files{
		"sys/devices/system/cpu/online":    "0-15",
		"sys/devices/system/node/online":   "0-3",
		"sys/devices/system/node/possible": "0-3",
	}
	var zoneinfo strings.Builder
	for node, distances := range []string{"10 12 20 22", "12 10 22 20", "20 22 10 12", "22 20 12 10"} {
		folder := fmt.Sprintf("sys/devices/system/node/node%d/", node)
		f[folder+"cpulist"] = fmt.Sprintf("%d-%d", 4*node, 4*node+3)
		f[folder+"distance"] = distances
		f[folder+"meminfo"] = fmt.Sprintf("Node %d MemTotal:  1048576 kB\nNode %d MemFree:  900000 kB", node, node)
		f[folder+"hugepages/hugepages-1048576kB/nr_hugepages"] = "0"
		f[folder+"hugepages/hugepages-1048576kB/free_hugepages"] = "0"
		f[folder+"hugepages/hugepages-2048kB/nr_hugepages"] = "8"
		f[folder+"hugepages/hugepages-2048kB/free_hugepages"] = "7"
		fmt.Fprintf(&zoneinfo, rigZoneinfo, node, node)
	}
	f["proc/zoneinfo"] = zoneinfo.String()
	for cpu := range 16 {
		folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", cpu)
		f[folder+"topology/physical_package_id"] = fmt.Sprint(cpu / 8)
		f[folder+"topology/die_id"] = fmt.Sprint(cpu / 4 % 2)
		f[folder+"topology/core_id"] = fmt.Sprint(cpu / 2 % 2)
		f[folder+"topology/cluster_id"] = "65535"
		f[folder+"topology/die_cpus_list"] = fmt.Sprintf("%d-%d", cpu&^3, cpu|3)
		f[folder+"topology/package_cpus_list"] = fmt.Sprintf("%d-%d", cpu&^7, cpu|7)
		f[folder+"topology/core_cpus_list"] = fmt.Sprintf("%d-%d", cpu&^1, cpu|1)
		f[folder+"cache/index1/level"] = "2" // no such processor is on the market, but Itanium had one
		f[folder+"cache/index1/type"] = "Instruction"
		f[folder+"cache/index1/shared_cpu_list"] = fmt.Sprint(cpu)
		f[folder+"cache/index2/level"] = "2"
		f[folder+"cache/index2/type"] = "Unified"
		f[folder+"cache/index2/size"] = "2048K"
		f[folder+"cache/index2/id"] = fmt.Sprint(cpu / 2)
		f[folder+"cache/index2/shared_cpu_list"] = fmt.Sprintf("%d-%d", cpu&^1, cpu|1)
		f[folder+"cache/index3/level"] = "3"
		f[folder+"cache/index3/size"] = "16384K"
		f[folder+"cache/index3/id"] = fmt.Sprint(cpu / 4)
		f[folder+"cache/index3/shared_cpu_list"] = fmt.Sprintf("%d-%d", cpu&^3, cpu|3)
	}
	return f
}

// rigZoneinfo is one node of /proc/zoneinfo, Linux 6.12, shortened; its pages add up to 1
// GiB of 4 KiB.
const rigZoneinfo = `Node %d, zone      DMA
  per-node stats
      nr_inactive_anon 37832
  pages free     2816
        boost    0
        min      64
        low      80
        high     96
        managed  3840
  pagesets
    cpu: 0
              count:    378
              high:     378
              batch:    63
Node %d, zone   Normal
  pages free     200000
        min      300
        low      352
        high     404
        managed  258304
`
