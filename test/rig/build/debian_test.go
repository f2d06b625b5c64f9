package build

import (
	"debug/elf"
	"strings"
	"testing"
)

func TestNodesNeedDebianOnAMD64(t *testing.T) {
	for _, row := range []struct{ arch, codename, want string }{
		{"amd64", "trixie", ""},
		{"amd64", "", "nodes need a Debian host with amd64, and this is another system on amd64"},
		{"arm64", "trixie", "nodes need a Debian host with amd64, and this is Debian trixie on arm64"},
	} {
		err := checkHost(row.arch, row.codename)
		if (err == nil) != (row.want == "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("Debian %q on %s: %v, want %q", row.codename, row.arch, err, row.want)
		}
	}
	if missing := (Cache{Dir: t.TempDir()}).missingPackages(Needs{}); len(missing) > 0 {
		t.Errorf("a cluster without nodes needs %s", missing)
	}
}

func TestMirrorIsOfDebian(t *testing.T) {
	const targets = `Docker CE|bookworm|stable|https://docker.example/linux/debian/
Tailscale|bookworm|main|https://vpn.example/debian/
Debian|bookworm-security|main|http://deb.example/debian-security/
Debian|bookworm|contrib|http://contrib.example/debian/
Debian|bookworm|main|http://deb.example/debian/
`
	if got, want := mirrorOf(targets, "bookworm"), "http://deb.example/debian/"; got != want {
		t.Errorf("the mirror is %q, want %q", got, want)
	}
	if got := mirrorOf(targets, "trixie"); got != "" {
		t.Errorf("without a source of trixie, the mirror is %q", got)
	}
}

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
