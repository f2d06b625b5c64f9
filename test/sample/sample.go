// Package sample has the machines that tests run on: those that package fake
// generates, and the recorded ones of package files.
package sample

import (
	"os"
	"sync"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// Preset returns the declaration of a generated machine.
func Preset(tb testing.TB, name string) fake.Machine {
	tb.Helper()
	for _, preset := range fake.Presets() {
		if preset.Name == name {
			return preset.Machine
		}
	}
	tb.Fatalf("no generated machine %s", name)
	return fake.Machine{}
}

// Folder writes a generated machine and returns the folder of its sys and proc.
func Folder(tb testing.TB, name string) string {
	tb.Helper()
	folder := tb.TempDir()
	if err := Preset(tb, name).Write(folder); err != nil {
		tb.Fatal(err)
	}
	return folder
}

// Machine reads a generated machine.
func Machine(tb testing.TB, name string) numa.Machine {
	tb.Helper()
	return Read(tb, Preset(tb, name))
}

// Sized declares a machine of two sockets, with 16 CPUs to each L3. It is for
// measurements of what grows with the number of CPUs, a multiple of 64.
func Sized(cpus int) fake.Machine {
	return fake.Machine{
		Make: fake.AMD, Sockets: 2, L3sPerSocket: cpus / 32, CoresPerSocket: cpus / 4, Threads: 2, MemoryBytes: 256 << 30,
		Hugepages: []fake.Hugepages{{PageBytes: 2 << 20, Pages: 1024, FreePages: 1024}},
	}
}

// Read reads a declared machine.
func Read(tb testing.TB, declared fake.Machine) numa.Machine {
	tb.Helper()
	machine, err := numa.Read(declared.FS())
	if err != nil {
		tb.Fatal(err)
	}
	return machine
}

// Each runs a test on every generated machine, and on every recorded one where
// there are some.
func Each(t *testing.T, test func(*testing.T, numa.Machine)) {
	t.Helper()
	for _, preset := range fake.Presets() {
		t.Run(preset.Name, func(t *testing.T) { test(t, Machine(t, preset.Name)) })
	}
	t.Run("recorded", func(t *testing.T) {
		for _, recorded := range files.RecordedMachines(t) {
			t.Run(recorded.Name, func(t *testing.T) { test(t, Recorded(t, recorded)) })
		}
	})
}

// read holds the recorded machines that were read before: to unpack one takes
// longer than all tests of it.
var read = struct {
	sync.Mutex
	machines map[string]numa.Machine
}{machines: map[string]numa.Machine{}}

// Recorded reads a recorded machine, once for all tests of a package.
func Recorded(tb testing.TB, recorded files.Recorded) numa.Machine {
	tb.Helper()
	read.Lock()
	defer read.Unlock()
	if machine, ok := read.machines[recorded.Name]; ok {
		return machine
	}
	machine, err := numa.Read(os.DirFS(recorded.Unpack(tb)))
	if err != nil {
		tb.Fatalf("read the machine of %s: %v", recorded.Name, err)
	}
	read.machines[recorded.Name] = machine
	return machine
}
