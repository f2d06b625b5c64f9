package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/guest"
)

// The packages' files are linked into the disk's folder, not copied: what a node writes
// in their place must stay its own.
func TestStagingLeavesTheCacheAsItIs(t *testing.T) {
	cache, root := t.TempDir(), filepath.Join(t.TempDir(), "root")
	const packaged = "usr/lib/os-release"
	ours := "etc/rig/service"
	for _, name := range []string{packaged, ours} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(cache, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cache, name), []byte("of the package\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/lib", filepath.Join(cache, "lib")); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(cache, root); err != nil {
		t.Fatal(err)
	}
	if err := stageGuest(root, guest.Guest{Init: guest.Systemd, CRI: guest.Containerd}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		file    string
		changed bool
	}{
		{filepath.Join(root, "lib/os-release"), false},
		{filepath.Join(root, ours), true},
		{filepath.Join(cache, ours), false},
	} {
		text, err := os.ReadFile(row.file)
		if err != nil || (string(text) != "of the package\n") != row.changed {
			t.Errorf("%s: %q, %v; want our text: %t", row.file, text, err, row.changed)
		}
	}
	info, err := os.Stat(filepath.Join(root, ours))
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("%s: %v, %v; want an executable", ours, info.Mode(), err)
	}
	if link, err := os.Readlink(filepath.Join(root, "lib")); err != nil || link != "usr/lib" {
		t.Errorf("lib links to %q, %v", link, err)
	}
}
