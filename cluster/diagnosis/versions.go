package diagnosis

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// oldestKubernetes is the oldest version in which everything that the driver needs is
// on by default. The chart requires the same version.
const oldestKubernetes = "1.36.0"

// gates returns the feature gates without which there are no zones.
func gates() []string {
	return []string{
		"DRAConsumableCapacity",        // claims share a zone
		"DRAResourceClaimDeviceStatus", // the driver writes to a claim's status
	}
}

// runtimes returns the container runtimes, each with the oldest version that enables
// CDI by default.
func runtimes() map[string]string {
	return map[string]string{"containerd": "2.0.0", "cri-o": "1.28.0"}
}

// older reports whether a version is older than another. It returns false for a version
// that cannot be parsed.
func older(text, than string) bool {
	parsed, err := version.ParseGeneric(text)
	return err == nil && parsed.LessThan(version.MustParseGeneric(than))
}

func kubernetesVersion(f *Facts) (findings []Finding) {
	check := func(node, component, version string) {
		if older(version, oldestKubernetes) {
			findings = append(findings, Finding{
				Node: node, Component: component, Setting: "version", Expected: "1.36 or newer", Detected: version,
			})
		}
	}
	check("", "kube-apiserver", f.Version)
	nodes := f.nodeObjects()
	for _, name := range f.Nodes() {
		if node := nodes[name]; node != nil {
			check(name, "kubelet", node.Status.NodeInfo.KubeletVersion)
		}
	}
	return findings
}

func featureGate(f *Facts) (findings []Finding) {
	for _, gate := range gates() {
		if on, known := f.Gates[gate]; known && !on {
			findings = append(findings, Finding{Component: "kube-apiserver", Setting: gate, Expected: "true", Detected: "false"})
		}
	}
	if f.Gates[rulesGate] && f.Objects.RuleVersion == snapshot.NotServed {
		findings = append(findings, Finding{
			Component: "kube-apiserver", Setting: "DeviceTaintRules of resource.k8s.io", Expected: "served, because " + rulesGate + " is on and the scheduler reads them",
			Detected: "no version is served",
		})
	}
	for _, node := range f.Nodes() {
		kubelet, known := f.Kubelets[node]
		if !known || !f.Gates[countingGate] || kubelet.FeatureGates[countingGate] || kubelet.FeatureGates["AllAlpha"] {
			continue
		}
		findings = append(findings, Finding{Node: node, Component: "kubelet", Setting: countingGate, Expected: "true, as in the API server", Detected: "not set, so false"})
	}
	return findings
}

// countingGate has scheduler and kubelets count what claims hold (docs/accounting.md). It
// has to be on in all components, and is off by default.
const countingGate = "DRANodeAllocatableResources"

// listsGate has the API server store lists, and the scheduler compare them (docs/zones.md). It
// is alpha, and off by default.
const listsGate = "DRAListTypeAttributes"

// rulesGate makes the scheduler read DeviceTaintRules. In Kubernetes 1.36, they are of
// v1beta2, which is off by default like the gate.
const rulesGate = "DRADeviceTaintRules"

func runtimeVersion(f *Facts) (findings []Finding) {
	nodes := f.nodeObjects()
	for _, name := range f.Nodes() {
		node := nodes[name]
		if node == nil {
			continue
		}
		runtime, version, _ := strings.Cut(node.Status.NodeInfo.ContainerRuntimeVersion, "://")
		if oldest, known := runtimes()[runtime]; known && older(version, oldest) {
			findings = append(findings, Finding{
				Node: name, Component: runtime, Setting: "version",
				Expected: fmt.Sprintf("%s or newer, which enables CDI by default", strings.TrimSuffix(oldest, ".0")), Detected: version,
			})
		}
	}
	return findings
}
