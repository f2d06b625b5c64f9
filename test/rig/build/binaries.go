package build

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// binaries is one `go build` in one module of the rig.
type binaries struct {
	module   string // folder below the project's root
	out      string // below the cache; a folder when it ends in a slash
	packages []string
	tags     string
	ldflags  string
	cgo      bool

	toolchain string // of Go; "" is the one that runs
}

// ControlPlane builds what runs on the host: etcd and kubectl, and the API server, its
// controllers and scheduler of a version of Kubernetes.
func (c Cache) ControlPlane(ctx context.Context, version string) error {
	sets, err := c.controlPlane(version)
	if err != nil {
		return err
	}
	if err := c.goBuild(ctx, sets...); err != nil {
		return err
	}
	return c.others(version)
}

func (c Cache) controlPlane(version string) (sets []binaries, err error) {
	versions := []string{version}
	if r, known := releases[version]; known && len(r.programs) < len(kubernetesPrograms) {
		versions = append(versions, DefaultKubernetes)
	}
	for _, version := range versions {
		kubernetes, err := c.kubernetes(version, "kubernetes/"+version+"/", releases[version].programs...)
		if err != nil {
			return nil, err
		}
		sets = append(sets, kubernetes)
	}
	kubectl, err := c.kubernetes(DefaultKubernetes, "bin/kubectl", "kubectl")
	if err != nil {
		return nil, err
	}
	etcd := binaries{module: "test/rig/runtime", out: "bin/etcd", packages: []string{"go.etcd.io/etcd/server/v3"}}
	return append(sets, kubectl, etcd), nil
}

// Node builds what runs in a virtual node, but for kubelet, which ControlPlane builds
// together with its siblings. The container runtime is containerd or crio.
func (c Cache) Node(ctx context.Context, cri string) error {
	if err := c.goBuild(ctx, nodePrograms(cri)...); err != nil || cri != crio {
		return err
	}
	return c.pinns(ctx)
}

func nodePrograms(cri string) []binaries {
	const containerd, plugins = "github.com/containerd/containerd/v2/cmd/", "github.com/containernetworking/plugins/plugins/"
	engine := binaries{
		module: "test/rig/runtime", out: "bin/", tags: "no_btrfs no_devmapper no_zfs no_aufs",
		packages: []string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"},
	}
	if cri == crio {
		engine = crioPrograms
	}
	return []binaries{
		engine,
		{
			module: "test/rig/runtime", out: "bin/cni/",
			packages: []string{plugins + "main/bridge", plugins + "main/loopback", plugins + "ipam/host-local"},
		},
		{
			module: "test/rig/runtime", out: "bin/runc", tags: "netgo osusergo seccomp", ldflags: "-extldflags -static", cgo: true,
			packages: []string{"github.com/opencontainers/runc"},
		},
		{module: "test/rig", out: "bin/rig-agent", packages: []string{"./agent"}},
	}
}

func (c Cache) goBuild(ctx context.Context, sets ...binaries) error {
	for _, b := range sets {
		t, err := c.thingOf(b)
		if err != nil {
			return err
		}
		if err := c.once(ctx, t.name, t.inputs, func() error { return c.goBuildOne(ctx, b) }); err != nil {
			return err
		}
	}
	return nil
}

func (c Cache) goBuildOne(ctx context.Context, b binaries) error {
	out := c.Path(b.out)
	if strings.HasSuffix(b.out, "/") {
		out += "/"
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	cgo := "CGO_ENABLED=0"
	if b.cgo {
		cgo = "CGO_ENABLED=1"
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", b.tags, "-ldflags", strings.TrimSpace("-s -w " + b.ldflags), "-o", out}, b.packages...)
	env := []string{cgo}
	if b.toolchain != "" {
		env = append(env, "GOTOOLCHAIN="+b.toolchain)
	}
	return c.run(ctx, filepath.Join(c.Source, b.module), env, "go", args...)
}

// thingOf names a build after its folder and its first program.
func (c Cache) thingOf(b binaries) (thing, error) {
	inputs, err := c.inputs(b)
	return thing{strings.TrimSuffix(b.out, "/") + "-" + filepath.Base(b.packages[0]), inputs}, err
}

// inputs is a text that changes when the build's result would: the module's versions, our
// own source, and the flags.
func (c Cache) inputs(b binaries) (string, error) {
	sum := sha256.New()
	files := []string{"go.mod", "go.sum"}
	if b.packages[0] == "./agent" {
		files = append(files, "agent/main.go")
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(c.Source, b.module, file))
		if err != nil {
			return "", err
		}
		sum.Write(text)
	}
	return fmt.Sprintf("%s %x %+v\n", runtime.Version(), sum.Sum(nil), b), nil
}
