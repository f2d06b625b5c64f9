package build

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// debianPackage is a package and the program, or the pattern of an absolute path, by which
// it is recognised.
type debianPackage struct{ name, shown string }

const busyboxPackage = "busybox-static"

// hostPrograms are the packages that every host of nodes needs.
var hostPrograms = []debianPackage{
	{"qemu-system-x86", "qemu-system-x86_64"},
	{busyboxPackage, "/bin/busybox"},
	{"e2fsprogs", "mke2fs"},
	{"kmod", "depmod"},
	{"xz-utils", "xz"},
	{"gcc", "gcc"},
	{"libc6-dev", "/usr/include/stdlib.h"},
	{"libseccomp-dev", "/usr/include/seccomp.h"},
	{"pkg-config", "pkg-config"},
}

// CheckHost is an error where no node can run: its kernel, its programs and its emulator are
// from Debian's packages, for amd64.
func CheckHost() error { return checkHost(runtime.GOARCH, debianCodename()) }

func checkHost(arch, codename string) error {
	if arch == "amd64" && codename != "" {
		return nil
	}
	system := "another system"
	if codename != "" {
		system = "Debian " + codename
	}
	return fmt.Errorf("nodes need a Debian host with amd64, and this is %s on %s; clusters without nodes need neither (-nodes 0)", system, arch)
}

// HostPrograms installs the packages that building and running a virtual node needs, if it
// may. Else it says what is missing.
func (c Cache) HostPrograms(ctx context.Context, needs Needs) error {
	missing := c.missingPackages(needs)
	if len(missing) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("missing on this host: install the packages %s, or be root", strings.Join(missing, " "))
	}
	unlock, err := c.lock(ctx, commonLock)
	if err != nil {
		return err
	}
	defer unlock()
	if missing = c.missingPackages(needs); len(missing) == 0 {
		return nil
	}
	return c.watch("install "+strings.Join(missing, " "), func() error { return c.installPackages(ctx, debianCodename(), missing) })
}

func (c Cache) installPackages(ctx context.Context, codename string, missing []string) error {
	// QEMU 7.2 of bookworm crashes about one boot in ten, its backport does not; later
	// releases have a good one.
	suites := []string{codename}
	if codename == "bookworm" {
		suites = append(suites, codename+"-backports")
	}
	apt, err := c.apt(ctx, suites...)
	if err != nil {
		return err
	}
	args := append(apt, "install", "-y", "-q", "--no-install-recommends", "-t", suites[len(suites)-1])
	return c.run(ctx, c.Dir, []string{"DEBIAN_FRONTEND=noninteractive"}, "apt-get", append(args, missing...)...)
}

func (c Cache) missingPackages(needs Needs) []string {
	if !needs.Nodes {
		return nil
	}
	packages := hostPrograms
	if needs.RDT && !c.has(qemuThing()) {
		packages = slices.Concat(packages, qemuTools)
	}
	var missing []string
	for _, p := range packages {
		if !p.installed() {
			missing = append(missing, p.name)
		}
	}
	return missing
}

func (p debianPackage) installed() bool {
	if !filepath.IsAbs(p.shown) {
		_, err := lookProgram(p.shown)
		return err == nil
	}
	found, err := filepath.Glob(p.shown)
	return err == nil && len(found) > 0 && (p.name != busyboxPackage || isStatic(p.shown))
}

// isStatic says whether a program needs no dynamic linker, as in nodes and images, which have
// nothing else. The package busybox has the same program with libraries; apt-get replaces it.
func isStatic(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// lookProgram also finds what Debian keeps in the administrator's folders, which are not
// on everybody's path.
func lookProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s: %w", name, exec.ErrNotFound)
}

// debianCodename is empty on anything but Debian.
func debianCodename() string {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return ""
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[key] = strings.Trim(value, `"`)
	}
	if fields["ID"] != "debian" {
		return ""
	}
	return fields["VERSION_CODENAME"]
}

// apt returns options that make apt-get and apt-cache use only the suites, from the
// mirror that this host already uses, with package lists of our own: the host's
// configuration stays as it is.
func (c Cache) apt(ctx context.Context, suites ...string) ([]string, error) {
	return c.aptLists(ctx, "deb", suites...)
}

// aptLists is apt for a kind of package: deb, or deb-src for sources.
func (c Cache) aptLists(ctx context.Context, kind string, suites ...string) ([]string, error) {
	dir := c.Path("apt", strings.TrimPrefix(kind+"_", "deb_")+strings.Join(suites, "_"))
	options := []string{
		"-o", "Dir::Etc::sourcelist=" + dir + "/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::State::lists=" + dir + "/lists", "-o", "Dir::Cache=" + dir + "/cache", "-o", "APT::Sandbox::User=",
	}
	mirror, err := c.mirror(ctx)
	if err != nil {
		return nil, err
	}
	var list strings.Builder
	for _, suite := range suites {
		fmt.Fprintf(&list, "%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", kind, mirror, suite)
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "sources.list"), []byte(list.String()), 0o644); err != nil {
		return nil, err
	}
	return options, c.run(ctx, c.Dir, nil, "apt-get", append(options, "update", "-q")...)
}

// mirror is the address of the Debian archive that this host uses. A new container has no lists
// of packages, without which apt-get does not know what a source is of.
func (c Cache) mirror(ctx context.Context) (string, error) {
	codename := debianCodename()
	find := func() (string, error) {
		targets, err := c.output(ctx, c.Dir, nil, "apt-get", "indextargets", "--format", "$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)")
		return mirrorOf(targets, codename), err
	}
	if mirror, err := find(); err != nil || mirror != "" {
		return mirror, err
	}
	if err := c.run(ctx, c.Dir, nil, "apt-get", "update", "-q"); err != nil {
		return "", err
	}
	mirror, err := find()
	if err == nil && mirror == "" {
		err = fmt.Errorf("apt-get indextargets: no source of Debian %s main on this host", codename)
	}
	return mirror, err
}

// mirrorOf finds Debian's own archive: others call themselves main of the same release, too.
func mirrorOf(targets, codename string) string {
	for line := range strings.Lines(targets) {
		if address, found := strings.CutPrefix(strings.TrimSpace(line), "Debian|"+codename+"|main|"); found {
			return address
		}
	}
	return ""
}
