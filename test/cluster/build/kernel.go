package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// Kernels are the guest kernels on offer and the Debian suite that each comes from.
var Kernels = map[string]string{"6.12": "trixie", "7.2": "trixie-backports"}

// KernelNames lists Kernels in order.
func KernelNames() []string {
	var names []string
	for name := range Kernels {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// guestModules are loaded by the initramfs before the root disk is mounted; their dependencies come with them.
var guestModules = []string{"crc32c_generic", "virtio_blk", "ext4", "virtio_net", "overlay", "veth", "bridge", "e1000e", "igb", "nvme"}

// Kernel fetches a guest kernel (unpacked, not installed) and builds its initramfs; both paths are in the cache.
func (c Cache) Kernel(ctx context.Context, name string, init []byte) (vmlinuz, initramfs string, err error) {
	suite, known := Kernels[name]
	if !known {
		return "", "", fmt.Errorf("kernel %q, allowed are %s", name, strings.Join(KernelNames(), ", "))
	}
	dir := c.Path("kernel", name)
	err = c.once("kernel/"+name+"/package", suite, func() error { return c.fetchKernel(ctx, dir, name, suite) })
	if err != nil {
		return "", "", err
	}
	images, err := filepath.Glob(dir + "/boot/vmlinuz-*")
	if err != nil || len(images) != 1 {
		return "", "", fmt.Errorf("kernel %s: %d images in %s/boot, want 1", name, len(images), dir)
	}
	version := strings.TrimPrefix(filepath.Base(images[0]), "vmlinuz-")
	initramfs = filepath.Join(dir, "initramfs.img")
	err = c.once("kernel/"+name+"/initramfs", version+strings.Join(guestModules, " ")+string(init), func() error {
		return c.initramfs(ctx, dir, version, initramfs, init)
	})
	return images[0], initramfs, err
}

func (c Cache) fetchKernel(ctx context.Context, dir, name, suite string) error {
	if debianCodename() == "" {
		return fmt.Errorf("unpack a Debian kernel package (linux-image-%s…-amd64) into %s, run depmod over it, and create %s/package.made with the text %q", name, dir, dir, suite)
	}
	apt, err := c.apt(ctx, suite)
	if err != nil {
		return err
	}
	out, err := c.output(ctx, c.Dir, nil, "apt-cache", append(apt, "depends", "linux-image-amd64")...)
	if err != nil {
		return err
	}
	pkg := ""
	for _, field := range strings.Fields(out) {
		if strings.HasPrefix(field, "linux-image-"+name+".") {
			pkg = field
		}
	}
	if pkg == "" {
		return fmt.Errorf("linux-image-amd64 of %s is no %s kernel:\n%s", suite, name, out)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := c.run(ctx, dir, nil, "apt-get", append(apt, "download", "-q", pkg)...); err != nil {
		return err
	}
	debs, err := filepath.Glob(dir + "/*.deb")
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("download %s: %d packages arrived, want 1", pkg, len(debs))
	}
	defer func() { _ = os.Remove(debs[0]) }()
	if err := c.run(ctx, dir, nil, "dpkg", "-x", debs[0], dir); err != nil {
		return err
	}
	depmod, err := lookProgram("depmod")
	if err != nil {
		return err
	}
	versions, err := filepath.Glob(dir + "/usr/lib/modules/*")
	if err != nil || len(versions) != 1 {
		return fmt.Errorf("package %s: %d module folders, want 1", pkg, len(versions))
	}
	return c.run(ctx, dir, nil, depmod, "-b", dir+"/usr", filepath.Base(versions[0]))
}

// initramfs packs busybox, the modules and the init script. The kernel unpacks xz archives but cannot load xz modules from
// a busybox insmod, so they are decompressed here.
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
		deps, err := c.output(ctx, dir, nil, modprobe, "-d", dir+"/usr", "-S", version, "--show-depends", module)
		if err != nil {
			if module == "crc32c_generic" {
				continue // built in since 6.14
			}
			return err
		}
		for line := range strings.Lines(deps) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "insmod" || packed[fields[1]] {
				continue
			}
			packed[fields[1]] = true
			text, err := c.output(ctx, dir, nil, "xz", "-dc", fields[1])
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(fields[1]), ".xz")
			archive.file(fmt.Sprintf("mods/%03d-%s", len(packed), name), 0o644, []byte(text))
		}
	}
	return os.WriteFile(out, archive.bytes(), 0o644)
}
