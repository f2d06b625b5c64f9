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

const systemdSuite = "trixie"

// systemdPackages are Debian's systemd with a system bus, and crun, and every library that their programs are linked with.
// kubelet and crun reach systemd over the system bus; as root they could do without, but few nodes do.
var systemdPackages = []string{
	"systemd", "systemd-sysv", "crun", "mount", "dbus", "dbus-daemon", "dbus-system-bus-common",
	"libacl1", "libapparmor1", "libaudit1", "libblkid1", "libc6", "libcap-ng0", "libcap2", "libcrypt1", "libdbus-1-3", "libexpat1",
	"libmount1", "libpam0g", "libpcre2-8-0", "libseccomp2", "libselinux1", "libsmartcols1", "libssl3t64", "libsystemd-shared",
	"libsystemd0", "libyajl2", "libzstd1", "zlib1g",
}

// systemdUnused are what no node reads, most of what the packages weigh, and the generators: a node has no fstab, GPT or
// System V script to make units of, and all of them run at every daemon-reload.
var systemdUnused = []string{
	"usr/share/bash-completion", "usr/share/bug", "usr/share/doc", "usr/share/lintian", "usr/share/locale", "usr/share/man", "usr/share/zsh",
	"usr/lib/x86_64-linux-gnu/gconv", "usr/lib/systemd/system-generators", "etc/init.d",
}

// Systemd fetches what a node with systemd as PID 1 has on its disk beside the files that every node has, and returns its folder.
func (c Cache) Systemd(ctx context.Context) (string, error) {
	dir := c.Path("systemd", "root")
	inputs := strings.Join(append([]string{systemdSuite}, append(systemdPackages, systemdUnused...)...), " ")
	return dir, c.once("systemd/root", inputs, func() error {
		if debianCodename() == "" {
			return fmt.Errorf("unpack the packages %s of Debian %s into %s and create %s.made with the text %q",
				strings.Join(systemdPackages, " "), systemdSuite, dir, dir, inputs)
		}
		apt, err := c.apt(ctx, systemdSuite)
		if err != nil {
			return err
		}
		if err := c.fetchPackages(ctx, apt, dir, systemdPackages); err != nil {
			return err
		}
		if err := trimSystem(dir); err != nil {
			return err
		}
		return checkLibraries(dir)
	})
}

// trimSystem removes what is not used, and links /bin, /sbin, /lib and /lib64 to their folders in /usr, where the packages
// put everything: Debian's base-files has those links, and nothing else that a node needs.
func trimSystem(dir string) error {
	for _, path := range systemdUnused {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return err
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// checkLibraries names the shared libraries that programs and libraries below dir are linked with and that are not there: a
// release may link systemd with more than systemdPackages has, and PID 1 would say so only on the console of a dead node.
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
