package fake

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestAWrittenMachineReadsAsTheOneInMemory(t *testing.T) {
	for _, name := range []string{"rig", "grace-hopper", "cxl-expander", "offline-and-hotplug", "no-numa"} {
		m := preset(t, name)
		dir := t.TempDir()
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		written, err := numa.Read(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		files.SameJSON(t, name+" on a disk as in memory", written, mustRead(t, m))
		want := m.Files()
		for link, target := range m.Links() {
			want[link] = target
			if _, err := os.Stat(dir + "/" + link); err != nil {
				t.Errorf("link %s leads nowhere: %v", link, err)
			}
		}
		got := files.Tree(t, dir)
		maps.DeleteFunc(got, func(_, text string) bool { return text == "folder" })
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: files and links (-want +got):\n%s", name, diff)
		}
	}
}

func TestWriteDoesNotWriteOverAFile(t *testing.T) {
	dir := t.TempDir()
	m := Machine{}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := m.Write(dir); err == nil || !strings.Contains(err.Error(), "file exists") {
		t.Errorf("the second Write = %v", err)
	}
	if err := m.Write(dir + "/missing"); err == nil {
		t.Error("Write makes the folder")
	}
}

func TestInMemoryFilesAreAFileSystem(t *testing.T) {
	m := preset(t, "no-numa")
	if err := fstest.TestFS(m.FS(), slices.Sorted(maps.Keys(m.Files()))...); err != nil {
		t.Error(err)
	}
}

func TestLinksAreFollowedOnTheWay(t *testing.T) {
	root := preset(t, "intel-2s").FS()
	for name, want := range map[string]string{
		"sys/bus/pci/devices/0000:3b:00.2/physfn":  "../0000:3b:00.0",
		"sys/bus/pci/devices/0000:3b:00.0/virtfn0": "../0000:3b:00.2",
		"sys/class/net/ens1f0np0":                  "../../devices/pci0000:3a/0000:3a:01.0/0000:3b:00.0/net/ens1f0np0",
	} {
		if got, err := fs.ReadLink(root, name); err != nil || got != want {
			t.Errorf("link %s leads to %q, %v; want %q", name, got, err, want)
		}
	}
	vendor, err := fs.ReadFile(root, "sys/class/net/ens1f0np0/device/virtfn0/physfn/vendor")
	if err != nil || string(vendor) != "0x15b3\n" {
		t.Errorf("vendor is %q, %v", vendor, err)
	}
}

func TestZonesAreListedByWhatTheyHave(t *testing.T) {
	for name, want := range map[string][]string{
		"cxl-expander": {"0-1", "0-2", "0-1", "", "0-2"},
		"grace-hopper": {"0", "0-1", "0", "1-8", "0-8"},
		"sparse-nodes": {"0-1,33,72", "0,33-34,72", "0,33-34,72", "", "0-127"},
	} {
		files := preset(t, name).Files()
		for i, list := range []string{"has_cpu", "has_memory", "has_normal_memory", "has_generic_initiator", "possible"} {
			if got := files[nodeFolder+"/"+list]; got != want[i]+"\n" {
				t.Errorf("%s of %s is %q, want %q", list, name, got, want[i])
			}
		}
	}
}

func TestEveryLineEndsInANewline(t *testing.T) {
	for _, p := range Presets() {
		for name, text := range p.Machine.Files() {
			isPadded := strings.HasSuffix(name, "/model") // with spaces, as the drive has it
			if !strings.HasSuffix(text, "\n") || strings.Contains(text, " \n") && !isPadded {
				t.Errorf("%s: %s has %q", p.Name, name, text)
			}
		}
	}
}

func TestMasksAreAsWideAsThePossibleCPUs(t *testing.T) {
	for cores, want := range map[int]string{1: "1", 4: "f", 5: "1f", 20: "fffff", 32: "ffffffff", 33: "1,ffffffff", 40: "ff,ffffffff"} {
		m := Machine{CoresPerSocket: cores}
		if got := m.Files()["sys/devices/system/node/node0/cpumap"]; got != want+"\n" {
			t.Errorf("mask of %d cpus is %q, want %q", cores, got, want)
		}
	}
	if got := (Machine{CoresPerSocket: 40, Absent: "1-39"}).Files()["sys/devices/system/node/node0/cpumap"]; got != "00,00000001\n" {
		t.Errorf("mask of cpu 0 of 40 is %q", got)
	}
}

// wantFiles compares the files of a folder. A text is empty where there must be no file.
func wantFiles(t *testing.T, files map[string]string, folder string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got := files[folder+"/"+name]; got != text {
			t.Errorf("%s is %q, want %q", name, got, text)
		}
	}
}

func TestAnOfflineCPUHasNoTopology(t *testing.T) {
	m := preset(t, "offline-and-hotplug")
	files := m.Files()
	wantFiles(t, files, cpuFolder, map[string]string{
		"possible": "0-31\n", "present": "0-27\n", "online": "0-2,4-8,10-18,20-27\n", "offline": "3,9,19,28-31\n",
		"cpu9/online": "0\n", "cpu8/online": "1\n", "cpu0/online": "", "cpu28/online": "",
	})
	for name := range files {
		if strings.Contains(name, "/cpu9/t") || strings.Contains(name, "/cpu9/c") || strings.Contains(name, "/cpu28/") {
			t.Errorf("there is %s", name)
		}
	}
}

// The numbers are those of a running kernel 6.18 with three kernel zones, transparent
// huge pages switched on.
func TestWatermarksAreTheKernels(t *testing.T) {
	l := newLayout(Machine{})
	zones := map[int][]kernelZone{0: {{managed: 3840}, {managed: 772915}, {managed: 2326528}, {}, {}}}
	l.setWatermarks(zones)
	var got []string
	for _, k := range zones[0] {
		got = append(got, fmt.Sprint(k.min, k.low, k.high, k.promotion))
	}
	want := "20 25 30 35; 4208 5260 6312 7364; 12666 15832 18998 22164; 32 32 32 32; 0 0 0 0"
	if strings.Join(got, "; ") != want {
		t.Errorf("watermarks are %s\nwant %s", strings.Join(got, "; "), want)
	}
	// Much memory: 4 times the root of 4e8 kB is 80000 kB, and a thousandth of the memory
	// is the larger step.
	zones = map[int][]kernelZone{0: {{}, {}, {managed: 100_000_000}, {}, {}}}
	l.setWatermarks(zones)
	if k := zones[0][normal]; k.min != 20_000 || k.low != 120_000 || k.high != 220_000 {
		t.Errorf("watermarks of 381 GiB are %d, %d, %d", k.min, k.low, k.high)
	}
}

func TestCoreIDsHaveHolesWhereAnL3HasNoPowerOfTwoOfThem(t *testing.T) {
	files := Machine{CoresPerSocket: 12, L3sPerSocket: 2, Threads: 2}.Files()
	for cpu, want := range map[int]string{5: "5\n", 6: "8\n", 11: "13\n"} {
		if got := files[fmt.Sprintf("%s/cpu%d/topology/core_id", cpuFolder, cpu)]; got != want {
			t.Errorf("core id of cpu %d is %q, want %q", cpu, got, want)
		}
	}
}

func TestAFunctionMayHideItsZoneBehindItsPort(t *testing.T) {
	wantFiles(t, preset(t, "offline-and-hotplug").Files(), "sys/devices/pci0000:3a", map[string]string{
		"0000:3a:01.0/0000:3b:00.0/numa_node":     "-1\n",
		"0000:3a:01.0/0000:3b:00.0/local_cpulist": "0-2,4-8,10-18,20-27\n",
		"0000:3a:01.0/numa_node":                  "1\n",
		"pci_bus/0000:3a/cpulistaffinity":         "8,10-15,24-27\n",
		"pci_bus/0000:3a/cpuaffinity":             "0f00fd00\n",
	})
}

func TestManagedPagesAreTheMemory(t *testing.T) {
	odd := Preset{"odd", Machine{Sockets: 3, MemoryBytes: MinMemoryBytes + 3*4096}}
	for _, p := range append(Presets(), odd) {
		l := newLayout(p.Machine)
		l.number()
		for _, z := range l.zones {
			var managed, free uint64
			for _, k := range l.kernelZones(z) {
				managed, free = managed+k.managed, free+k.free
			}
			if managed*l.PageBytes != z.MemoryBytes || free*l.PageBytes != l.freeBytes(z) || free > managed {
				t.Errorf("%s: zone %d has %d pages and %d bytes; %d of the pages are free and %d of the bytes",
					p.Name, z.ID, managed, z.MemoryBytes, free, l.freeBytes(z))
			}
		}
	}
}

func BenchmarkFiles(b *testing.B) {
	for _, name := range []string{"512cpus", "1024cpus-16nodes"} {
		m := preset(b, name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m.Files()
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, name := range []string{"512cpus", "1024cpus-16nodes"} {
		m := preset(b, name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				if err := m.Write(dir); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
