package build

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheckLibrariesNamesProgramAndLibrary(t *testing.T) {
	const program = "/bin/sh"
	file, err := elf.Open(program)
	if err != nil {
		t.Skipf("no program to look at: %v", err)
	}
	libraries, err := file.ImportedLibraries()
	_ = file.Close()
	if err != nil || !slices.Contains(libraries, "libc.so.6") {
		t.Skipf("%s is linked with %q, not with the C library of Debian", program, libraries)
	}
	dir := t.TempDir()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"sh": string(text), "script": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkLibraries(dir); err == nil || !strings.Contains(err.Error(), "sh needs lib") {
		t.Errorf("without any library: %v, want one that names sh and the library", err)
	}
	for _, library := range libraries {
		if err := os.Symlink("elsewhere", filepath.Join(dir, library)); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkLibraries(dir); err != nil {
		t.Errorf("with every library: %v", err)
	}
}

func TestTrimSystemKeepsWhatANodeUses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"usr/share/doc/systemd/NEWS", "usr/lib/systemd/systemd", "usr/lib/systemd/system-generators/systemd-fstab-generator"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := trimSystem(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"lib/systemd/systemd": true, "usr/lib/systemd/systemd": true, "usr/share/doc": false, "lib/systemd/system-generators": false,
	} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: there %t, want %t", name, err == nil, want)
		}
	}
}
