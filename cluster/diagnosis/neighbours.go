package diagnosis

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Annotations of other programs that matter to this driver. A bundle keeps them, and the
// generation of a DaemonSet's template.
const (
	// scaleDownDisabled keeps Cluster Autoscaler from removing a node.
	// Source: kubernetes/autoscaler, cluster-autoscaler/FAQ.md.
	scaleDownDisabled = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// loadBalancing has CRI-O change the cpuset partition of a pod's containers.
	// Source: cri-o, internal/runtimehandlerhooks.
	loadBalancing = "cpu-load-balancing.crio.io"
)

// runtimeTuning is an annotation of pods with which CRI-O changes the same as a
// PerformanceConfig. Source: cri-o, internal/runtimehandlerhooks/high_performance_hooks.go.
type runtimeTuning struct {
	annotation string
	changes    string // what CRI-O changes, for people
	sets       func(deviceclasses.PerformanceSettings) bool
}

func runtimeTunings() []runtimeTuning {
	return []runtimeTuning{
		{"cpu-freq-governor.crio.io", "the governor of its CPUs", deviceclasses.PerformanceSettings.Frequency},
		{"cpu-c-states.crio.io", "the idle states of its CPUs", func(s deviceclasses.PerformanceSettings) bool { return s.IdleLatency != nil }},
		{"irq-load-balancing.crio.io", "which CPUs handle interrupts", func(s deviceclasses.PerformanceSettings) bool { return s.Interrupts != "" }},
	}
}

// KeepsAnnotation reports whether a check needs the annotation of another program.
func KeepsAnnotation(key string) bool {
	return key == scaleDownDisabled || key == loadBalancing || key == appsv1.DeprecatedTemplateGeneration ||
		slices.ContainsFunc(runtimeTunings(), func(t runtimeTuning) bool { return t.annotation == key })
}

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
	nodes := f.nodeObjects()
	for _, node := range f.Nodes() {
		if object := nodes[node]; object != nil && object.Annotations[scaleDownDisabled] != "true" {
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
		if imageName(container.Image) == name {
			return true
		}
	}
	return false
}

// cgroupWriter finds pods with claims whose cpusets CRI-O changes, too.
func cgroupWriter(f *Facts) (findings []Finding) {
	users := f.users()
	for _, pod := range f.Objects.Pods {
		value, set := pod.Annotations[loadBalancing]
		if !set || snapshot.Finished(pod) || !slices.ContainsFunc(users[pod.UID], ours) {
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

// cachesPublished finds nodes that publish no caches although their NodeConfig divides them.
// Only nodes that were asked say so.
func cachesPublished(f *Facts) (findings []Finding) {
	for _, node := range f.Nodes() {
		if state := f.States[node]; state != nil && state.Host != nil && state.Host.NoCaches != "" {
			findings = append(findings, Finding{
				Node: node, Component: deviceclasses.NodeConfigKind, Setting: "cache", Expected: "caches that the node can divide", Detected: state.Host.NoCaches,
			})
		}
	}
	return findings
}

// staleProfile finds nodes whose labels choose other profiles than when their daemon started.
// Only nodes that were asked say so.
func staleProfile(f *Facts) (findings []Finding) {
	return profileFindings(f, "as the profiles for the labels of the node say; the daemon starts again for them within an hour, if the machine can have these settings",
		func(p *nodestate.Profiles) (fields []string) {
			for _, field := range p.Stale {
				fields = append(fields, field+": as the labels said when the daemon started")
			}
			return fields
		})
}

// profileOverlap finds nodes for which several profiles set the same field. Only nodes that
// were asked say so.
func profileOverlap(f *Facts) []Finding {
	return profileFindings(f, "one profile that sets it, or profiles in this order: the last one wins", func(p *nodestate.Profiles) []string { return p.Overlapping })
}

// profileFindings makes a finding of each line, which begins with the name of a field.
func profileFindings(f *Facts, expected string, lines func(*nodestate.Profiles) []string) (findings []Finding) {
	for _, node := range f.Nodes() {
		state := f.States[node]
		if state == nil || state.Host == nil || state.Host.Profiles == nil {
			continue
		}
		for _, line := range lines(state.Host.Profiles) {
			field, detected, _ := strings.Cut(line, ": ")
			findings = append(findings, Finding{Node: node, Component: deviceclasses.NodeConfigKind, Setting: field, Expected: expected, Detected: detected})
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

// powerService finds services that change what claims of their node set. Only nodes that
// were asked say so.
func powerService(f *Facts) (findings []Finding) {
	tuned := f.tuningClaims()
	for _, node := range f.Nodes() {
		state, claims := f.States[node], tuned[node]
		if state == nil || state.Host == nil || len(claims) == 0 {
			continue
		}
		for _, service := range state.Host.Services {
			if service == nodestate.ServiceIrqbalance {
				continue // movedInterrupts finds it
			}
			findings = append(findings, Finding{
				Node: node, Component: service, Setting: "CPUs of claims",
				Expected: "not changed by the service, because claims of this node set their frequencies, idle states or interrupts: " + message.First(claims, 3),
				Detected: "not visible; the service runs",
			})
		}
	}
	return findings
}

// tuningClaims returns the claims that set something of their CPUs, by node.
func (f *Facts) tuningClaims() map[string][]string {
	names := make(map[string][]string)
	for _, claim := range f.Objects.Claims {
		var node string // all devices of a claim are on one node
		for _, device := range claim.Status.Devices {
			if device.Driver == driver.Name {
				node = device.Pool
			}
		}
		if len(tunings(claim, node)) > 0 {
			names[node] = append(names[node], claim.Namespace+"/"+claim.Name)
		}
	}
	return names
}

// performanceAnnotation finds pods for which CRI-O changes what their claims set.
func performanceAnnotation(f *Facts) (findings []Finding) {
	users := f.users()
	for _, pod := range f.Objects.Pods {
		if snapshot.Finished(pod) {
			continue
		}
		for _, tuning := range runtimeTunings() {
			value, set := pod.Annotations[tuning.annotation]
			if !set {
				continue
			}
			for _, claim := range users[pod.UID] {
				if claim.Namespace != pod.Namespace || !slices.ContainsFunc(tunings(claim, pod.Spec.NodeName), tuning.sets) {
					continue
				}
				findings = append(findings, Finding{
					Node: pod.Spec.NodeName, Component: "Pod " + pod.Namespace + "/" + pod.Name, Setting: "annotation " + tuning.annotation,
					Expected: "none, because CRI-O would change " + tuning.changes + ", which claim " + claim.Name + " sets", Detected: value,
				})
			}
		}
	}
	return findings
}
