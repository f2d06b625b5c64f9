package draw

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// reviewed are machines of different kinds, none with so many CPUs that nobody would read
// its document.
var reviewed = []string{
	"cxl-expander", "grace-hopper", "hybrid-laptop", "intel-2s-snc2", "no-numa", "offline-and-hotplug", "rig", "sparse-nodes",
}

func TestGolden(t *testing.T) {
	for _, name := range reviewed {
		t.Run(name, func(t *testing.T) {
			machine := sample.Machine(t, name)
			for ending, text := range map[string]string{
				"txt": drawn(t, machine, DefaultWidth), "svg": picture(t, machine), "json": document(t, machine),
			} {
				files.Golden(t, filepath.Join("testdata", name+"."+ending), text)
			}
		})
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) != 3*len(reviewed)+2 { // and two of TestGoldenWithNames
		t.Errorf("testdata has %d files, %v; want 3 for each of %d machines, and 2 with names", len(files), err, len(reviewed))
	}
}

func TestGoldenWithNames(t *testing.T) {
	machine := sample.Machine(t, "rig")
	text := files.Render(t, func(w io.Writer) error { return Text(w, machine, TextOptions{Names: intelNames}) })
	svg := files.Render(t, func(w io.Writer) error { return SVG(w, machine, intelNames) })
	files.Golden(t, "testdata/names.txt", text)
	files.Golden(t, "testdata/names.svg", svg)
}

// intelNames are a database with one product.
func intelNames(vendor, device uint16) (vendorName, product string) {
	if vendor == 0x8086 && device == 0x10d3 {
		return "Intel Corporation", "82574L Gigabit Network Connection"
	}
	return "", ""
}

func drawn(t *testing.T, machine numa.Machine, width int) string {
	t.Helper()
	return files.Render(t, func(w io.Writer) error { return Text(w, machine, TextOptions{Width: width}) })
}

func picture(t *testing.T, machine numa.Machine) string {
	t.Helper()
	return files.Render(t, func(w io.Writer) error { return SVG(w, machine, nil) })
}

func document(t *testing.T, machine numa.Machine) string {
	t.Helper()
	return files.Render(t, func(w io.Writer) error { return JSON(w, Topology(machine)) })
}
