package build

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
}

const kubernetesModule = "test/cluster"

// ControlPlane builds what runs on the host: etcd, the API server, its controllers and scheduler, and kubectl.
func (c Cache) ControlPlane(ctx context.Context) error {
	kubernetes, err := c.kubernetes("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl")
	if err != nil {
		return err
	}
	return c.goBuild(ctx, kubernetes,
		binaries{module: "test/cluster/runtime", out: "bin/etcd", packages: []string{"go.etcd.io/etcd/server/v3"}})
}

// Node builds what runs in a virtual node, but for kubelet, which ControlPlane builds together with its siblings.
func (c Cache) Node(ctx context.Context) error {
	const containerd, plugins = "github.com/containerd/containerd/v2/cmd/", "github.com/containernetworking/plugins/plugins/"
	return c.goBuild(ctx,
		binaries{
			module: "test/cluster/runtime", out: "bin/", tags: "no_btrfs no_devmapper no_zfs no_aufs",
			packages: []string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"},
		},
		binaries{
			module: "test/cluster/runtime", out: "bin/cni/",
			packages: []string{plugins + "main/bridge", plugins + "main/loopback", plugins + "ipam/host-local"},
		},
		binaries{
			module: "test/cluster/runtime", out: "bin/runc", tags: "netgo osusergo seccomp", ldflags: "-extldflags -static", cgo: true,
			packages: []string{"github.com/opencontainers/runc"},
		},
		binaries{module: kubernetesModule, out: "bin/rig-agent", packages: []string{"./agent"}},
	)
}

// kubernetes names the version in the binaries as a release build does; the API server derives its own from it.
func (c Cache) kubernetes(commands ...string) (binaries, error) {
	mod, err := os.ReadFile(filepath.Join(c.Source, kubernetesModule, "go.mod"))
	if err != nil {
		return binaries{}, err
	}
	version := regexp.MustCompile(`k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)`).FindStringSubmatch(string(mod))
	if version == nil {
		return binaries{}, fmt.Errorf("%s/go.mod: no version of k8s.io/kubernetes", kubernetesModule)
	}
	const pkg = "-X k8s.io/component-base/version."
	b := binaries{
		module: kubernetesModule, out: "bin/",
		ldflags: fmt.Sprintf("%sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", pkg, version[1], pkg, version[2], pkg, version[3]),
	}
	for _, command := range commands {
		b.packages = append(b.packages, "k8s.io/kubernetes/cmd/"+command)
	}
	return b, nil
}

func (c Cache) goBuild(ctx context.Context, sets ...binaries) error {
	for _, b := range sets {
		inputs, err := c.inputs(b)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(b.out, "/") + "-" + filepath.Base(b.packages[0])
		if err := c.once(name, inputs, func() error { return c.goBuildOne(ctx, b) }); err != nil {
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
	return c.run(ctx, filepath.Join(c.Source, b.module), []string{cgo}, "go", args...)
}

// inputs is a text that changes when the build's result would: the module's versions, our own source, and the flags.
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
