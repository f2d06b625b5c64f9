package interrupts

import (
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Without the capability DAC_OVERRIDE, the kernel refuses to open the files of interrupts
// that it does not move. If a file that can be written is refused, something else is wrong.
func TestInterruptWithAReadOnlyFileStays(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{0o444: Managed, 0o644: ""} {
		name := numa.AffinityFile(7)
		files := fstest.MapFS{name: {Data: []byte("0-3\n"), Mode: mode}}
		host := New(files, func(name, _ string) error { return &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES} })
		refused, err := host.Apply([]Write{{Line: numa.Interrupt{Number: 7, Name: "timer"}, Should: cpuset.New(1)}})
		switch {
		case want == "" && err == nil:
			t.Errorf("mode %o: no error", mode)
		case want != "" && (err != nil || len(refused) != 1 || refused[0].Why != want):
			t.Errorf("mode %o: refused %v, %v, want %q", mode, refused, err, want)
		}
	}
}

// A daemon with that capability can open them, and then gets an error of the write.
func TestManagedInterruptsStayWhateverTheDaemonMayOpen(t *testing.T) {
	want := []Refusal{{0, "timer", Managed}, {27, "nvme0q1", Managed}}
	for _, override := range []bool{false, true} {
		if refused := newNodeWith(t, override).begin("a", "4-5"); !slices.Equal(refused, want) {
			t.Errorf("override %t: refused are %v, want %v", override, refused, want)
		}
	}
}
