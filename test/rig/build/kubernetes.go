package build

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// DefaultKubernetes is the version of the rig's own module, whose client libraries talk
// to all of them.
const DefaultKubernetes = "1.37"

// release is a version of Kubernetes on offer.
type release struct {
	module    string   // folder of the module that requires it
	toolchain string   // of Go, if it is not the usual one
	programs  []string // the others are those of DefaultKubernetes
}

var kubernetesPrograms = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"}

// releases are all versions. Of a beta, module proxies do not have all modules: those of 1.38
// are enough for its scheduler.
var releases = map[string]release{
	DefaultKubernetes: {module: "test/rig", programs: kubernetesPrograms},
	"1.36":            {module: "test/rig/kubernetes-1.36", programs: kubernetesPrograms},
	"1.38":            {module: "test/rig/kubernetes-1.38", toolchain: "go1.27.1", programs: []string{"kube-scheduler"}},
}

// KubernetesVersions lists the versions of Kubernetes on offer, in order.
func KubernetesVersions() []string { return slices.Sorted(maps.Keys(releases)) }

// KubernetesDir is where the programs of a version are, but for kubectl.
func (c Cache) KubernetesDir(version string) string { return c.Path("kubernetes", version) }

// kubernetes names the version in the binaries as a release build does; the API server
// derives its own from it.
func (c Cache) kubernetes(version, out string, commands ...string) (binaries, error) {
	r, known := releases[version]
	if !known {
		return binaries{}, fmt.Errorf("version %q of Kubernetes, allowed are %q", version, KubernetesVersions())
	}
	mod, err := os.ReadFile(filepath.Join(c.Source, r.module, "go.mod"))
	if err != nil {
		return binaries{}, err
	}
	required := regexp.MustCompile(`k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+(-[a-z]+\.\d+)?)`).FindStringSubmatch(string(mod))
	if required == nil {
		return binaries{}, fmt.Errorf("%s/go.mod: no version of k8s.io/kubernetes", r.module)
	}
	const pkg = "-X k8s.io/component-base/version."
	b := binaries{
		module: r.module, out: out, toolchain: r.toolchain,
		ldflags: fmt.Sprintf("%sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", pkg, required[1], pkg, required[2], pkg, required[3]),
	}
	for _, command := range commands {
		b.packages = append(b.packages, "k8s.io/kubernetes/cmd/"+command)
	}
	return b, nil
}

// others links, for a version that has not all programs, to those of DefaultKubernetes.
func (c Cache) others(version string) error {
	for _, name := range kubernetesPrograms {
		if slices.Contains(releases[version].programs, name) {
			continue
		}
		err := os.Symlink(filepath.Join("..", DefaultKubernetes, name), filepath.Join(c.KubernetesDir(version), name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
