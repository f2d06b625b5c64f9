package build

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const systemSuite = "trixie"

// runtimePackages are Debian's crun and every library that it, or that of newerPackages, is
// linked with. The crun of systemSuite ignores memory policies: nodes have it as oldCrun.
var runtimePackages = []string{"crun", "libc6", "libcap2", "libjson-c5", "libseccomp2", "libsystemd0", "libyajl2"}

// oldCrun is the path of crun of systemSuite.
const oldCrun = "usr/bin/crun-old"

// newerPackages are packages of newerSuite that run with the libraries of systemSuite: a crun
// that sets memory policies (1.24 is the first), and the library that systemSuite lacks.
var newerPackages = []string{"crun", "libblake3-0"}

const newerSuite = "forky"

// systemdPackages are Debian's systemd with a system bus, and every library that their
// programs are linked with. kubelet and crun reach systemd over the system bus; as root
// they could do without, but few nodes do.
var systemdPackages = []string{
	"systemd", "systemd-sysv", "mount", "dbus", "dbus-daemon", "dbus-system-bus-common",
	"libacl1", "libapparmor1", "libaudit1", "libblkid1", "libcap-ng0", "libcrypt1", "libdbus-1-3", "libexpat1",
	"libmount1", "libpam0g", "libpcre2-8-0", "libselinux1", "libsmartcols1", "libssl3t64", "libsystemd-shared",
	"libzstd1", "zlib1g",
}

// systemPackages are what the nodes have of Debian's packages, by what is PID 1. Those
// with CRI-O have crioPackages, too.
var systemPackages = map[string][]string{
	"busybox": runtimePackages,
	"systemd": slices.Concat(systemdPackages, runtimePackages),
}

// systemUnused are what no node reads, most of what the packages weigh, and the
// generators: a node has no fstab, GPT or System V script to make units of, and all of
// them run at every daemon-reload.
var systemUnused = []string{
	"usr/share/bash-completion", "usr/share/bug", "usr/share/doc", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/zsh",
	"usr/lib/x86_64-linux-gnu/gconv", "usr/lib/x86_64-linux-gnu/libcrun.a", "usr/lib/systemd/system-generators", "etc/init.d",
}

// System fetches what a node with this PID 1 and this container runtime has of Debian's
// packages on its disk, and returns its folder.
func (c Cache) System(ctx context.Context, init, cri string) (string, error) {
	if _, known := systemPackages[init]; !known {
		return "", fmt.Errorf("init %q, allowed are %q", init, slices.Sorted(maps.Keys(systemPackages)))
	}
	packages := packagesOf(init, cri)
	t := systemThing(init, cri)
	dir := c.Path(t.name)
	return dir, c.once(ctx, t.name, t.inputs, func() error {
		apt, err := c.apt(ctx, systemSuite)
		if err != nil {
			return err
		}
		if err := c.fetchPackages(ctx, apt, dir, packages); err != nil {
			return err
		}
		if err := c.addNewer(ctx, dir); err != nil {
			return err
		}
		if err := trimSystem(dir); err != nil {
			return err
		}
		return checkLibraries(dir)
	})
}

// addNewer adds newerPackages to the unpacked packages in dir, and keeps the crun there.
func (c Cache) addNewer(ctx context.Context, dir string) error {
	apt, err := c.apt(ctx, newerSuite)
	if err != nil {
		return err
	}
	newer := dir + ".newer"
	defer func() { _ = os.RemoveAll(newer) }()
	if err := c.fetchPackages(ctx, apt, newer, newerPackages); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "usr/bin/crun"), filepath.Join(dir, oldCrun)); err != nil {
		return err
	}
	return c.run(ctx, newer, nil, "cp", "-a", ".", dir)
}

// packagesOf lists the packages of a node, each once.
func packagesOf(init, cri string) []string {
	packages := slices.Clone(systemPackages[init])
	if cri == crio {
		packages = append(packages, crioPackages...)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// systemThing is the folder of a node's Debian packages.
func systemThing(init, cri string) thing {
	name := "system/" + init
	if cri == crio {
		name += "-" + cri
	}
	return thing{name, strings.Join(slices.Concat([]string{systemSuite}, packagesOf(init, cri), []string{newerSuite}, newerPackages, systemUnused), " ")}
}

// trimSystem removes what is not used, and links /bin, /sbin, /lib and /lib64 to their
// folders in /usr, where the packages put everything: Debian's base-files has those
// links, and nothing else that a node needs.
func trimSystem(dir string) error {
	for _, path := range systemUnused {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.MkdirAll(filepath.Join(dir, "usr", name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// checkLibraries names the shared libraries that programs and libraries below dir are
// linked with and that are not there: a release may link systemd with more than
// systemdPackages has, and PID 1 would say so only on the console of a dead node.
func checkLibraries(dir string) error {
	have, wanted := map[string]bool{}, map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		have[d.Name()] = true
		if !d.Type().IsRegular() {
			return nil
		}
		file, err := elf.Open(path)
		if err != nil {
			return nil //nolint:nilerr // not a program
		}
		defer func() { _ = file.Close() }()
		libraries, err := file.ImportedLibraries()
		for _, library := range libraries {
			wanted[library] = d.Name()
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, library := range slices.Sorted(maps.Keys(wanted)) {
		if !have[library] {
			return fmt.Errorf("%s needs %s, which no package of the list has", wanted[library], library)
		}
	}
	return nil
}
