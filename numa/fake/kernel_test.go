package fake

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The kernel of the test cluster's default node is what the preset "rig" declares. This
// test runs in that node, as a program of its own:
//
//	CGO_ENABLED=0 go test -c -o kernel.test ./numa/fake
//	NUMA_RIG_ROOT=/ ./kernel.test -test.run TestKernelWritesWhatTheRigPresetSays
func TestKernelWritesWhatTheRigPresetSays(t *testing.T) {
	root := os.Getenv("NUMA_RIG_ROOT")
	if root == "" {
		t.Skip("NUMA_RIG_ROOT names no root of a kernel; it runs in the default node of the test cluster")
	}
	kernel := &watchedFS{FS: os.DirFS(root), opened: map[string]bool{}}
	rig := preset(t, "rig")
	values := rig.Files()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		got, err := fs.ReadFile(kernel.FS, name)
		if err != nil {
			t.Errorf("the preset has a file that the kernel has not: %v", err)
		} else if wrong := differ(name, string(got), values[name]); wrong != "" {
			t.Errorf("%s: the kernel has not %s", name, wrong)
		}
	}
	links := rig.Links()
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if got, err := fs.ReadLink(kernel.FS, name); err != nil || got != links[name] {
			t.Errorf("link %s: kernel has %q, %v; preset %q", name, got, err, links[name])
		}
	}
	got, err := numa.Read(kernel)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(kernel.opened)) {
		isTopology := strings.Contains(name, "/topology/") || strings.Contains(name, "/cache/index") || strings.HasPrefix(name, nodeFolder)
		if _, known := values[name]; !known && isTopology {
			t.Errorf("the reader uses a file of the kernel that the preset has not: %s", name)
		}
	}
	want := mustRead(t, rig)
	files.SameJSON(t, "the kernel's machine as the preset's", withoutAmounts(got, rig), withoutAmounts(want, rig))
}

// watchedFS keeps the names of files that were read. It is an [fs.ReadLinkFS].
type watchedFS struct {
	fs.FS
	opened map[string]bool
}

func (w *watchedFS) Open(name string) (fs.File, error) {
	file, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && !info.IsDir() {
		w.opened[name] = true
	}
	return file, nil
}

func (w *watchedFS) ReadLink(name string) (string, error)   { return fs.ReadLink(w.FS, name) }
func (w *watchedFS) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(w.FS, name) }

// amounts are files whose numbers vary from one machine to the next, or that have more
// lines on other kernels. Only the form of what the preset has is compared.
var amounts = []string{
	"meminfo", "zoneinfo", "nr_hugepages", "free_hugepages", "nr_hugepages_mempolicy", "nr_overcommit_hugepages", "resv_hugepages",
	"surplus_hugepages", "kernel_max", "size", "ways_of_associativity", "number_of_sets", "revision",
	"max_link_speed", "max_link_width", "current_link_speed", "current_link_width",
}

// differ returns the first line that is not as it should be; "" where none is.
func differ(name, got, want string) string {
	if path.Base(name) == "nohz_full" { // Linux 6.12 prints no set as (null), 7.3 as an empty one
		got, want = strings.Replace(got, "(null)", "", 1), strings.Replace(want, "(null)", "", 1)
		got, want = strings.TrimSpace(got), strings.TrimSpace(want)
	}
	if name == numa.BootIDFile { // another one at each boot
		got, want = hexDigit.ReplaceAllString(got, "x"), hexDigit.ReplaceAllString(want, "x")
	}
	if !slices.Contains(amounts, path.Base(name)) {
		if got != want {
			return want + " but " + got
		}
		return ""
	}
	have := map[string]bool{}
	for _, form := range forms(got) {
		have[form] = true
	}
	for _, form := range forms(want) {
		if !have[form] {
			return form
		}
	}
	return ""
}

var (
	hexDigit    = regexp.MustCompile(`[0-9a-f]`)
	number      = regexp.MustCompile(` *[0-9]+`)
	kernelBlock = regexp.MustCompile(`^Node +[0-9]+, zone +[A-Za-z0-9]+\n`)
)

// forms returns the lines with N for each number and the white space before it; those of
// zoneinfo with their block.
func forms(text string) (lines []string) {
	block := ""
	for line := range strings.Lines(text) {
		if kernelBlock.MatchString(line) {
			block = line
			lines = append(lines, line)
			continue
		}
		node, rest, found := strings.Cut(line, " Mem") // of node<N>/meminfo, the node is no amount
		if found && strings.HasPrefix(node, "Node ") {
			lines = append(lines, node+" Mem"+number.ReplaceAllString(rest, "N"))
			continue
		}
		lines = append(lines, block+number.ReplaceAllString(line, "N"))
	}
	return lines
}

// withoutAmounts leaves of a machine what the declaration says, and of its PCI functions
// those that it declares.
func withoutAmounts(m numa.Machine, declared Machine) numa.Machine {
	if m.NoHZFull != nil && m.NoHZFull.IsEmpty() {
		m.NoHZFull = nil
	}
	for i := range m.Zones {
		z := &m.Zones[i]
		z.MemoryBytes, z.FreeBytes, z.Watermarks = nil, nil, nil
		for j := range z.Hugepages {
			z.Hugepages[j].TotalPages, z.Hugepages[j].FreePages = 0, nil
		}
	}
	for _, caches := range [][]numa.Cache{m.L2s, m.L3s} {
		for i := range caches {
			caches[i].SizeBytes = nil
		}
	}
	m.PCI = slices.DeleteFunc(m.PCI, func(f numa.PCIFunction) bool {
		return !slices.ContainsFunc(declared.PCI, func(d Function) bool { return d.Address == f.Address || d.Port.Address == f.Address })
	})
	for i := range m.PCI {
		m.PCI[i].Net, m.PCI[i].LinkMbps = nil, nil // its name depends on who was first, its speed on the cable
	}
	return m
}
