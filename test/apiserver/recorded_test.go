package apiserver

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// defaultArchives is where a checkout of the project has recorded machines
// beside it; NUMA_SNAPSHOTS names another folder.
const defaultArchives = "../../../shared/testdata/hwloc"

// archives lists the recorded machines, and skips the test where there are
// fewer than three.
func archives(t *testing.T) []string {
	t.Helper()
	folder := os.Getenv("NUMA_SNAPSHOTS")
	if folder == "" {
		folder = defaultArchives
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.tar.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 3 {
		t.Skipf("%d recorded machines (*.tar.bz2) in %s, want 3 or more; set NUMA_SNAPSHOTS to a folder of them", len(names), folder)
	}
	return names
}

// readArchive reads the machine whose /sys and /proc the archive holds below
// its single top folder.
func readArchive(t *testing.T, name string) numa.Machine {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := unpack(root, tar.NewReader(bzip2.NewReader(file))); err != nil {
		t.Fatalf("unpack %s: %v", name, err)
	}
	machine, err := numa.Read(root.FS())
	if err != nil {
		t.Fatalf("read the machine of %s: %v", name, err)
	}
	return machine
}

// unpack writes what describes CPUs, memory and NUMA nodes, with modes of our
// own: recorded files may be unreadable.
func unpack(root *os.Root, archive *tar.Reader) error {
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(path.Clean(header.Name), "/")
		if !strings.HasPrefix(name, "proc/") && !strings.HasPrefix(name, "sys/devices/system/") {
			continue
		}
		if err := unpackOne(root, name, header, archive); err != nil {
			return err
		}
	}
}

func unpackOne(root *os.Root, name string, header *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		text, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		return root.WriteFile(name, text, 0o644)
	}
	return nil
}

// rigMachine is the node that the test rig starts by default: 2 sockets, 4
// zones of 2 cores with 2 threads each.
func rigMachine() numa.Machine {
	var m numa.Machine
	for id := range 4 {
		zone := numa.Zone{
			ID:             id,
			Sockets:        []int{id / 2},
			MemoryBytes:    1 << 30,
			WatermarkBytes: 12 << 20,
			Hugepages:      []numa.Hugepages{{PageBytes: 2 << 20, TotalPages: 8, FreePages: 8}, {PageBytes: 1 << 30}},
			CoreType:       numa.StandardCores,
		}
		for core := range 2 {
			first := 4*id + 2*core
			cpus := cpuset.New(first, first+1)
			m.Cores = append(m.Cores, numa.Core{Socket: id / 2, Die: id % 2, ID: core, Zone: id, CPUs: cpus})
			zone.CPUs = zone.CPUs.Union(cpus)
		}
		m.Zones = append(m.Zones, zone)
		m.Online = m.Online.Union(zone.CPUs)
	}
	return m
}
