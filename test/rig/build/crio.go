package build

import (
	"context"
	"path/filepath"
	"strings"
)

// crio is the name of CRI-O's program.
const crio = "crio"

// crioPrograms have a module of their own: in one with containerd, they would be built
// with other versions of what both import than CRI-O was released with. The tags leave out
// what would need C libraries.
var crioPrograms = binaries{
	module: "test/rig/crio", out: "bin/", tags: "containers_image_openpgp exclude_graphdriver_btrfs exclude_graphdriver_devicemapper",
	packages: []string{crioModule + "/cmd/crio"},
}

const crioModule = "github.com/cri-o/cri-o"

// crioPackages are what CRI-O runs for each container and what fills its image store, and
// every library that they are linked with.
var crioPackages = []string{
	"conmon", "libatomic1", "libblkid1", "libffi8", "libglib2.0-0t64", "libmount1", "libpcre2-8-0", "libselinux1", "zlib1g",
	"skopeo", "libassuan9", "libgpg-error0", "libgpgme11t64", "libsqlite3-0",
}

// pinns compiles CRI-O's program in C, which pins the namespaces of a pod, with the flags
// of its Makefile.
func (c Cache) pinns(ctx context.Context) error {
	inputs, err := c.inputs(crioPrograms)
	if err != nil {
		return err
	}
	return c.once(ctx, "bin/pinns", inputs, func() error {
		dir, err := c.output(ctx, filepath.Join(c.Source, crioPrograms.module), nil, "go", "list", "-m", "-f", "{{.Dir}}", crioModule)
		if err != nil {
			return err
		}
		sources, err := filepath.Glob(filepath.Join(strings.TrimSpace(dir), "pinns/src/*.c"))
		if err != nil {
			return err
		}
		return c.run(ctx, c.Dir, nil, "gcc", append([]string{"-std=c99", "-O3", "-Wall", "-static", "-s", "-o", c.Path("bin/pinns")}, sources...)...)
	})
}
