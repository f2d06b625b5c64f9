package diagnosis

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
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
