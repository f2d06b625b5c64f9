package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// Kernels are the guest kernels on offer and the Debian suite that each comes from.
var Kernels = map[string]string{"6.1": "bookworm", "6.12": "trixie", "7.2": "trixie-backports"}

// KernelNames lists Kernels in order.
func KernelNames() []string {
	var names []string
	for name := range Kernels {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// guestModules are loaded by the initramfs before the root disk is mounted; their
// dependencies come with them.
var guestModules = []string{
	"virtio_iommu", "crc32c_generic", "virtio_pci", "virtio_blk", "ext4", "virtio_net", "overlay", "veth", "bridge", "e1000e", "igb", "igbvf", "nvme",
	"vfio-pci", "vfio_iommu_type1", "acpi-cpufreq", "cpufreq_powersave",
}

// missingModules are those that not every kernel has: Debian's 6.1 has no virtio_iommu,
// crc32c_generic is built in since 6.14, and virtio_pci in Debian's 7.2.
var missingModules = map[string]bool{"virtio_iommu": true, "crc32c_generic": true, "virtio_pci": true}

// Kernel fetches a guest kernel (unpacked, not installed) and builds its initramfs; both
// paths are in the cache.
func (c Cache) Kernel(ctx context.Context, name string, init []byte) (vmlinuz, initramfs string, err error) {
	suite, known := Kernels[name]
	if !known {
		return "", "", fmt.Errorf("kernel %q, allowed are %s", name, strings.Join(KernelNames(), ", "))
	}
	dir := c.Path("kernel", name)
	t := kernelThing(name)
	err = c.once(ctx, t.name, t.inputs, func() error { return c.fetchKernel(ctx, dir, name, suite) })
	if err != nil {
		return "", "", err
	}
	version, err := kernelVersion(dir)
	if err != nil {
		return "", "", err
	}
	vmlinuz = filepath.Join(usrFolder(dir), "lib/modules", version, "vmlinuz")
	if _, err := os.Stat(vmlinuz); err != nil { // before 7.x
		vmlinuz = filepath.Join(dir, "boot/vmlinuz-"+version)
	}
	initramfs = filepath.Join(dir, "initramfs.img")
	err = c.once(ctx, "kernel/"+name+"/initramfs", version+strings.Join(guestModules, " ")+string(init), func() error {
		return c.initramfs(ctx, dir, version, initramfs, init)
	})
	return vmlinuz, initramfs, err
}

// kernelThing is the unpacked package of a kernel.
func kernelThing(name string) thing { return thing{"kernel/" + name + "/package", Kernels[name]} }

// usrFolder has the folder lib/modules of a kernel that was unpacked in dir. Up to Debian
// 12 it is dir itself.
func usrFolder(dir string) string {
	if _, err := os.Stat(dir + "/usr/lib/modules"); err != nil {
		return dir
	}
	return dir + "/usr"
}

// kernelVersion is the release of the kernel that was unpacked in dir, as uname -r prints
// it.
func kernelVersion(dir string) (string, error) {
	folders, err := filepath.Glob(usrFolder(dir) + "/lib/modules/*")
	if err != nil || len(folders) != 1 {
		return "", fmt.Errorf("kernel packages in %s: %d module folders, want 1", dir, len(folders))
	}
	return filepath.Base(folders[0]), nil
}

func (c Cache) fetchKernel(ctx context.Context, dir, name, suite string) error {
	apt, err := c.apt(ctx, suite)
	if err != nil {
		return err
	}
	out, err := c.output(ctx, c.Dir, nil, "apt-cache", append(apt, "pkgnames", "linux-image-"+name+".")...)
	if err != nil {
		return err
	}
	pkg := newestImage(name, strings.Fields(out))
	if pkg == "" {
		return fmt.Errorf("%s has no %s kernel, no package linux-image-%s.<n>+…-amd64", suite, name, name)
	}
	packages := []string{pkg}
	if out, err = c.output(ctx, c.Dir, nil, "apt-cache", append(apt, "depends", pkg)...); err != nil {
		return err
	}
	for _, field := range strings.Fields(out) { // since 7.x the image is a package of its own, and so are its modules
		if strings.HasPrefix(field, "linux-binary-") || strings.HasPrefix(field, "linux-modules-") {
			packages = append(packages, field)
		}
	}
	if err := c.fetchPackages(ctx, apt, dir, packages); err != nil {
		return err
	}
	return c.listModules(ctx, dir)
}

// module is the content of a kernel module, which is compressed since Debian 13.
func (c Cache) module(ctx context.Context, path string) (string, error) {
	if !strings.HasSuffix(path, ".xz") {
		text, err := os.ReadFile(path)
		return string(text), err
	}
	return c.output(ctx, filepath.Dir(path), nil, "xz", "-dc", path)
}

// newestImage is the package of the highest patch level of a kernel; "" without one. A
// suite keeps older kernels for a while, and those of the cloud and real-time flavours
// beside them.
func newestImage(name string, packages []string) (newest string) {
	highest := -1
	for _, pkg := range packages {
		release := strings.TrimPrefix(pkg, "linux-image-"+name+".")
		patch, rest, modern := strings.Cut(release, "+") // 107+deb13-amd64
		if !modern {
			_, release, _ = strings.Cut(release, "-") // up to Debian 12: 0-56-amd64
			patch, rest, _ = strings.Cut(release, "-")
			rest = "-" + rest
		}
		_, flavour, _ := strings.Cut(rest, "-")
		level, err := strconv.Atoi(patch)
		if err == nil && flavour == "amd64" && level > highest {
			highest, newest = level, pkg
		}
	}
	return newest
}

// listModules lists the dependencies of the modules below dir, which no package has.
func (c Cache) listModules(ctx context.Context, dir string) error {
	depmod, err := lookProgram("depmod")
	if err != nil {
		return err
	}
	version, err := kernelVersion(dir)
	if err != nil {
		return err
	}
	return c.run(ctx, dir, nil, depmod, "-b", usrFolder(dir), version)
}

// initramfs packs busybox, the modules and the init script. The kernel unpacks xz
// archives but cannot load xz modules from a busybox insmod, so they are decompressed
// here.
func (c Cache) initramfs(ctx context.Context, dir, version, out string, init []byte) error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	modprobe, err := lookProgram("modprobe")
	if err != nil {
		return err
	}
	archive := cpio{}
	for _, d := range []string{"bin", "mods", "proc", "sys", "dev", "newroot"} {
		archive.dir(d)
	}
	archive.file("init", 0o755, init)
	archive.file("bin/busybox", 0o755, busybox)
	packed := map[string]bool{}
	for _, module := range guestModules {
		deps, err := c.output(ctx, dir, nil, modprobe, "-d", usrFolder(dir), "-S", version, "--show-depends", module)
		if err != nil {
			if missingModules[module] {
				continue
			}
			return err
		}
		for line := range strings.Lines(deps) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "insmod" || packed[fields[1]] {
				continue
			}
			packed[fields[1]] = true
			text, err := c.module(ctx, fields[1])
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(fields[1]), ".xz")
			archive.file(fmt.Sprintf("mods/%03d-%s", len(packed), name), 0o644, []byte(text))
		}
	}
	return os.WriteFile(out, archive.bytes(), 0o644)
}
