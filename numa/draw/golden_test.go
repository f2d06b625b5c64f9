package draw

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/machines"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden are machines of different kinds, none with so many CPUs that nobody would read its document.
var golden = []string{
	"cxl-expander", "grace-hopper", "hybrid-laptop", "intel-2s-snc2", "no-numa", "offline-and-hotplug", "rig", "sparse-nodes",
}

func generated(t *testing.T, name string) numa.Machine {
	t.Helper()
	for _, preset := range fake.Presets() {
		if preset.Name == name {
			return read(t, preset.Machine)
		}
	}
	t.Fatalf("no generated machine %s", name)
	return numa.Machine{}
}

func read(t *testing.T, declared fake.Machine) numa.Machine {
	t.Helper()
	if err := declared.Validate(); err != nil {
		t.Fatal(err)
	}
	machine, err := numa.Read(declared.FS())
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func TestGolden(t *testing.T) {
	for _, name := range golden {
		t.Run(name, func(t *testing.T) {
			machine := generated(t, name)
			for ending, text := range map[string]string{
				"txt": drawn(t, machine, DefaultWidth), "svg": picture(t, machine), "json": document(t, machine),
			} {
				path := filepath.Join("testdata", name+"."+ending)
				if *update {
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), text); diff != "" {
					t.Errorf("drawing differs from %s (-golden +drawn); -update rewrites it:\n%s", path, diff)
				}
			}
		})
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) != 3*len(golden) {
		t.Errorf("testdata has %d files, %v; want 3 for each of %d machines", len(files), err, len(golden))
	}
}

// everywhere runs a test on every generated machine, and on every recorded one where there are some.
func everywhere(t *testing.T, test func(*testing.T, numa.Machine)) {
	t.Helper()
	for _, preset := range fake.Presets() {
		t.Run(preset.Name, func(t *testing.T) { test(t, read(t, preset.Machine)) })
	}
	t.Run("recorded", func(t *testing.T) {
		for _, recorded := range machines.All(t) {
			t.Run(recorded.Name, func(t *testing.T) { test(t, readRecorded(t, recorded)) })
		}
	})
}

// recordedMachines are those read so far: unpacking one takes longer than all tests of it.
var recordedMachines = map[string]numa.Machine{}

func readRecorded(t *testing.T, recorded machines.Recorded) numa.Machine {
	t.Helper()
	machine, ok := recordedMachines[recorded.Name]
	if !ok {
		var err error
		if machine, err = numa.Read(os.DirFS(recorded.Unpack(t))); err != nil {
			t.Fatal(err)
		}
		recordedMachines[recorded.Name] = machine
	}
	return machine
}

func drawn(t *testing.T, machine numa.Machine, width int) string {
	t.Helper()
	var out bytes.Buffer
	if err := Text(&out, machine, TextOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func picture(t *testing.T, machine numa.Machine) string {
	t.Helper()
	var out bytes.Buffer
	if err := SVG(&out, machine); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func document(t *testing.T, machine numa.Machine) string {
	t.Helper()
	var out bytes.Buffer
	if err := JSON(&out, Topology(machine)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
