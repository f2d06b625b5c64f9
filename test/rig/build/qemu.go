package build

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// rdtPatch gives QEMU's processors cache allocation and monitoring; its first lines say
// how a machine asks for them.
//
//go:embed qemu/rdt.patch
var rdtPatch []byte

// qemuDevices is the configuration of the devices that this QEMU has.
//
//go:embed qemu/rig.mak
var qemuDevices []byte

// qemuSuite is the Debian suite whose source of QEMU the patch is for, and qemuOldest the
// oldest version that will do: a later 10.0 than HostPrograms installs on Debian 12. Before
// 10.0.4, QEMU ends with a segmentation fault at some boots: CPUs used the map of the memory
// after it was freed.
const (
	qemuSuite  = "trixie"
	qemuOldest = "10.0.13"
)

const qemuLock = "qemu.lock"

// qemuTools are what building QEMU needs besides hostPrograms.
var qemuTools = []debianPackage{
	{"libglib2.0-dev", "/usr/include/glib-2.0/glib.h"},
	{"libpixman-1-dev", "/usr/include/pixman-1/pixman.h"},
	{"libslirp-dev", "/usr/include/slirp/libslirp.h"},
	{"zlib1g-dev", "/usr/include/zlib.h"},
	{"meson", "/usr/lib/python3/dist-packages/mesonbuild"},
	{"python3-pycotap", "/usr/lib/python3/dist-packages/pycotap"},
	{"python3-venv", "/usr/lib/python3.*/ensurepip"},
	{"ninja-build", "ninja"},
	{"patch", "patch"},
}

// qemuConfigure are the options of QEMU's configure: an emulator of x86 machines with
// the devices of qemuDevices and user networking, and nothing else. Python is Debian's,
// whose modules qemuTools has.
var qemuConfigure = []string{
	"--python=/usr/bin/python3", "--target-list=x86_64-softmmu",
	"--without-default-features", "--without-default-devices", "--with-devices-x86_64=rig",
	"--enable-system", "--enable-tcg", "--enable-slirp", "--enable-pixman",
	"--disable-docs", "--disable-tools", "--disable-debug-info", "--disable-download", "--disable-install-blobs",
}

// QEMU builds the QEMU for machines with RDT from Debian's source, and returns the
// command that runs it. It emulates only. Its firmware is that of the packages of
// HostPrograms. It has a lock of its own, so that it can be built at a low priority while
// clusters start that do without it.
func (c Cache) QEMU(ctx context.Context) ([]string, error) {
	dir := c.Path("qemu")
	program := filepath.Join(dir, "qemu-system-x86_64")
	t := qemuThing()
	err := c.onceLocked(ctx, qemuLock, t.name, t.inputs, func() error { return c.buildQEMU(ctx, filepath.Join(dir, "work"), program) })
	return []string{program, "-L", "/usr/share/qemu", "-L", "/usr/share/seabios"}, err
}

func qemuThing() thing {
	sum := sha256.Sum256(slices.Concat(rdtPatch, qemuDevices))
	return thing{"qemu", fmt.Sprintf("%s %s %x %s", qemuSuite, qemuOldest, sum, strings.Join(qemuConfigure, " "))}
}

// buildQEMU builds in the folder work, which stays if the build fails.
func (c Cache) buildQEMU(ctx context.Context, work, program string) error {
	source, build := filepath.Join(work, "source"), filepath.Join(work, "build")
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	for _, dir := range []string{source, build} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := c.fetchQEMU(ctx, work, source); err != nil {
		return err
	}
	patch := filepath.Join(work, "rdt.patch")
	for name, text := range map[string][]byte{patch: rdtPatch, filepath.Join(source, "configs/devices/x86_64-softmmu/rig.mak"): qemuDevices} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	for _, step := range []struct {
		dir     string
		command []string
	}{
		{source, []string{"patch", "-p1", "-i", patch}},
		{build, append([]string{filepath.Join(source, "configure")}, qemuConfigure...)},
		{build, []string{"ninja", filepath.Base(program)}},
	} {
		if err := c.run(ctx, step.dir, nil, step.command[0], step.command[1:]...); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(build, filepath.Base(program)), program); err != nil {
		return err
	}
	return os.RemoveAll(work)
}

// fetchQEMU downloads the archive of QEMU's source into work and unpacks it into source.
// Debian's changes are not needed: they are for its packages.
func (c Cache) fetchQEMU(ctx context.Context, work, source string) error {
	apt, err := c.aptLists(ctx, "deb-src", qemuSuite)
	if err != nil {
		return err
	}
	if err := c.run(ctx, work, nil, "apt-get", append(apt, "source", "--download-only", "--tar-only", "-q", "qemu")...); err != nil {
		return err
	}
	archives, err := filepath.Glob(work + "/qemu_*.orig.tar.xz")
	if err != nil || len(archives) != 1 {
		return fmt.Errorf("source of QEMU in %s: %d archives %q, want 1", qemuSuite, len(archives), archives)
	}
	if err := checkQEMU(archives[0]); err != nil {
		return err
	}
	return c.run(ctx, work, nil, "tar", "-xJf", archives[0], "-C", source, "--strip-components=1")
}

// checkQEMU is an error if the version in the name of an archive of QEMU's source, such as
// qemu_10.0.13+ds.orig.tar.xz, is older than qemuOldest, or not a 10.0.
func checkQEMU(archive string) error {
	var have, oldest int
	_, err := fmt.Sscanf(filepath.Base(archive), "qemu_10.0.%d", &have)
	if _, bad := fmt.Sscanf(qemuOldest, "10.0.%d", &oldest); err != nil || bad != nil || have < oldest {
		return fmt.Errorf("source of QEMU in %s: %s, want 10.0 from %s on", qemuSuite, filepath.Base(archive), qemuOldest)
	}
	return nil
}
