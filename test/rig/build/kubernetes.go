package build

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// DefaultKubernetes is the version of the rig's own module, whose client libraries talk
// to all of them.
const DefaultKubernetes = "1.37"

// kubernetesModules are the versions of Kubernetes on offer and the module that requires
// each.
var kubernetesModules = map[string]string{DefaultKubernetes: "test/rig", "1.36": "test/rig/kubernetes-1.36"}

// KubernetesVersions lists them in order.
func KubernetesVersions() []string { return slices.Sorted(maps.Keys(kubernetesModules)) }

// KubernetesDir is where the programs of a version are, but for kubectl.
func (c Cache) KubernetesDir(version string) string { return c.Path("kubernetes", version) }

// kubernetes names the version in the binaries as a release build does; the API server
// derives its own from it.
func (c Cache) kubernetes(version, out string, commands ...string) (binaries, error) {
	module, known := kubernetesModules[version]
	if !known {
		return binaries{}, fmt.Errorf("version %q of Kubernetes, allowed are %q", version, KubernetesVersions())
	}
	mod, err := os.ReadFile(filepath.Join(c.Source, module, "go.mod"))
	if err != nil {
		return binaries{}, err
	}
	release := regexp.MustCompile(`k8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)`).FindStringSubmatch(string(mod))
	if release == nil {
		return binaries{}, fmt.Errorf("%s/go.mod: no version of k8s.io/kubernetes", module)
	}
	const pkg = "-X k8s.io/component-base/version."
	b := binaries{
		module: module, out: out,
		ldflags: fmt.Sprintf("%sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", pkg, release[1], pkg, release[2], pkg, release[3]),
	}
	for _, command := range commands {
		b.packages = append(b.packages, "k8s.io/kubernetes/cmd/"+command)
	}
	return b, nil
}
