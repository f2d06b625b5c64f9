package diagnosis

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// otherCPUDriver finds other drivers that publish CPUs, once per node.
func otherCPUDriver(f *Facts) (findings []Finding) {
	nodes, told := f.nodeNames(), make(map[Finding]bool)
	for _, slice := range f.Objects.Slices {
		if slice.Spec.NodeName == nil || !nodes[*slice.Spec.NodeName] || !driver.RivalOf(slice).CPUs {
			continue
		}
		finding := Finding{
			Node: *slice.Spec.NodeName, Component: slice.Spec.Driver, Setting: "ResourceSlices",
			Expected: "no CPUs on a node with " + driver.Name, Detected: "publishes CPUs",
		}
		if !told[finding] {
			told[finding] = true
			findings = append(findings, finding)
		}
	}
	return findings
}

// suspectedCPUDriver finds other drivers that may give out CPUs of claims. If a node was not
// asked which CPUs claims may get, they may get all.
func suspectedCPUDriver(f *Facts) (findings []Finding) {
	all := make(map[string][]*resourceapi.ResourceSlice)
	for _, slice := range f.Objects.Slices {
		if slice.Spec.NodeName != nil {
			all[*slice.Spec.NodeName] = append(all[*slice.Spec.NodeName], slice)
		}
	}
	for _, node := range f.Nodes() {
		for _, suspect := range driver.SuspectsOf(all[node]) {
			if cpus, known := f.grantable(node); known {
				remains := false
				if suspect, remains = suspect.On(cpus); !remains {
					continue
				}
			}
			findings = append(findings, Finding{
				Node: node, Component: suspect.Driver, Setting: "ResourceSlices",
				Expected: "no CPUs that claims of " + driver.Name + " may get; if it gives out such CPUs, name it in otherCPUDrivers or reserve them",
				Detected: "publishes " + suspect.String(),
			})
		}
	}
	return findings
}

// grantable returns the CPUs of a node that claims may get, if the node was asked.
func (f *Facts) grantable(node string) (cpus cpuset.Set, known bool) {
	state := f.States[node]
	if state == nil || state.Layout == nil || state.Layout.Reserved == nil {
		return cpuset.Set{}, false
	}
	for _, cache := range state.Layout.Caches {
		for _, core := range cache.Cores {
			cpus = cpus.Union(core)
		}
	}
	return cpus.Difference(*state.Layout.Reserved), true
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
