package build

import (
	"debug/elf"
	"testing"
)

// A node runs busybox without any library.
func TestProgramWithLibrariesIsNoStaticBusybox(t *testing.T) {
	const program = "/bin/sh"
	file, err := elf.Open(program)
	if err != nil {
		t.Skipf("no program to look at: %v", err)
	}
	defer func() { _ = file.Close() }()
	libraries, err := file.ImportedLibraries()
	if err != nil || len(libraries) == 0 {
		t.Skipf("%s is linked statically (%v)", program, err)
	}
	for name, want := range map[string]bool{"dash": true, busyboxPackage: false} {
		if got := (debianPackage{name, program}).installed(); got != want {
			t.Errorf("%s, shown by %s: installed is %t, want %t", name, program, got, want)
		}
	}
}
