package diagnosis

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Annotations of other programs that matter to this driver. A bundle keeps them.
const (
	// scaleDownDisabled keeps Cluster Autoscaler from removing a node.
	// Source: kubernetes/autoscaler, cluster-autoscaler/FAQ.md.
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// loadBalancing has CRI-O change the cpuset partition of a pod's containers.
	// Source: cri-o, internal/runtimehandlerhooks.
	loadBalancing = "cpu-load-balancing.crio.io"
)

// KeepsAnnotation reports whether a check needs the annotation of another program.
func KeepsAnnotation(key string) bool { return key == scaleDownDisabled || key == loadBalancing }

// autoscaler finds nodes with zones that Cluster Autoscaler may remove while claims use
// them: it goes by the requests of pods. Only kube-system counts, where tenants cannot
// create pods.
func autoscaler(f *Facts) (findings []Finding) {
	name := ""
	for _, pod := range f.Objects.Pods {
		if pod.Namespace == metav1.NamespaceSystem && !snapshot.Finished(pod) && runsImage(pod, "cluster-autoscaler") {
			name = pod.Namespace + "/" + pod.Name
			break
		}
	}
	if name == "" {
		return nil
	}
	var open []string
	for _, node := range f.Nodes() {
		if object := f.Objects.Node(node); object != nil && object.Annotations[scaleDownDisabled] != "true" {
			open = append(open, node)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return []Finding{{
		Component: "Pod " + name, Setting: "removal of nodes",
		Expected: "the annotation " + scaleDownDisabled + "=true on nodes with zones, because a node whose claims hold all CPUs can look unused",
		Detected: "not on " + message.First(open, 3),
	}}
}

// runsImage reports whether the last part of an image's path, without tag and digest, is
// the name.
func runsImage(pod *corev1.Pod, name string) bool {
	for _, container := range pod.Spec.Containers {
		base, _, _ := strings.Cut(path.Base(container.Image), "@")
		base, _, _ = strings.Cut(base, ":")
		if base == name {
			return true
		}
	}
	return false
}

// cgroupWriter finds pods with claims whose cpusets CRI-O changes, too.
func cgroupWriter(f *Facts) (findings []Finding) {
	for _, pod := range f.Objects.Pods {
		value, set := pod.Annotations[loadBalancing]
		if !set || snapshot.Finished(pod) || !f.usesOurs(pod) {
			continue
		}
		findings = append(findings, Finding{
			Node: pod.Spec.NodeName, Component: "Pod " + pod.Namespace + "/" + pod.Name, Setting: "annotation " + loadBalancing,
			Expected: "none, because CRI-O would change the partition of the claim; ask for partition: isolated in the claim", Detected: value,
		})
	}
	return findings
}

// nriOff finds nodes whose container runtime does not offer NRI although the chart uses
// it. Only nodes that were asked say so.
func nriOff(f *Facts) (findings []Finding) {
	for _, node := range f.Nodes() {
		if state := f.States[node]; state != nil && state.Host != nil && state.Host.NRI != nil && !*state.Host.NRI {
			findings = append(findings, Finding{
				Node: node, Component: "container runtime", Setting: "NRI",
				Expected: "on, because nri.enabled is set in the chart: mixed and shared claims and memoryPolicy need it", Detected: "no socket nri.sock",
			})
		}
	}
	return findings
}

// movedInterrupts finds nodes on which irqbalance moves interrupts, perhaps to the CPUs of
// claims. Only nodes that were asked say so.
func movedInterrupts(f *Facts) (findings []Finding) {
	for _, node := range f.Nodes() {
		if state := f.States[node]; state != nil && state.Host != nil && state.Host.Irqbalance != "" {
			findings = append(findings, Finding{
				Node: node, Component: "irqbalance", Setting: "IRQBALANCE_BANNED_CPULIST",
				Expected: "the CPUs that claims may get, or no irqbalance", Detected: "not visible; irqbalance runs in the cgroup " + state.Host.Irqbalance,
			})
		}
	}
	return findings
}
