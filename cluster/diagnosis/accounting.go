package diagnosis

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/capacity"
)

func (f *Facts) balance() accounting.Report {
	objects := f.Objects
	return accounting.Balance(accounting.Cluster{Nodes: objects.Nodes, Slices: objects.Slices, Claims: objects.Claims, Pods: objects.Pods})
}

// overcommit finds nodes on which pods request, and claims hold, more than the
// scheduler may give out.
func overcommit(f *Facts) (findings []Finding) {
	for _, node := range f.balance().Nodes {
		for _, name := range slices.Sorted(maps.Keys(node.Overcommit)) {
			findings = append(findings, Finding{
				Node: node.Name, Component: "Node " + node.Name, Setting: string(name),
				Expected: "requests and claims of at most " + text(node.Allocatable, name),
				Detected: fmt.Sprintf("%s too much: pods request %s, and claims hold %s that no pod requests", text(node.Overcommit, name),
					text(node.Requested, name), text(node.Uncounted, name)),
			})
		}
	}
	return findings
}

// zonesDiffer finds nodes whose zones say something else of how claims are counted than the
// zones of other nodes, or than any zone can.
func zonesDiffer(f *Facts) (findings []Finding) {
	mapped, unmapped := map[string]bool{}, map[string]bool{}
	for _, slice := range f.zones() {
		node := *slice.Spec.NodeName
		for device := range accounting.Zones([]*resourceapi.ResourceSlice{slice}) {
			if len(device.NodeAllocatableResources) > 0 {
				mapped[node] = true
			} else {
				unmapped[node] = true
			}
			findings = append(findings, largeSteps(node, device)...)
		}
	}
	if len(mapped) == 0 || len(unmapped) == 0 {
		return findings
	}
	few, is, others := unmapped, "none", "some"
	if len(mapped) < len(unmapped) {
		few, is, others = mapped, others, is
	}
	for _, node := range slices.Sorted(maps.Keys(few)) {
		findings = append(findings, Finding{
			Node: node, Component: driver.Name, Setting: "nodeAllocatableResources of zones",
			Expected: others + ", as on other nodes: the webhook counts claims until all zones have them", Detected: is,
		})
	}
	return findings
}

// largeSteps finds capacities that a zone does not give in such large steps.
func largeSteps(node string, device *resourceapi.Device) (findings []Finding) {
	for _, key := range slices.Sorted(maps.Keys(device.Capacity)) {
		policy, most := device.Capacity[key].RequestPolicy, accounting.LargestStep(key)
		if policy == nil || policy.ValidRange == nil || policy.ValidRange.Step == nil || !accounting.IsCapacity(key) {
			continue
		}
		if step := *policy.ValidRange.Step; !capacity.Countable(step) || step.Cmp(most) > 0 {
			findings = append(findings, Finding{
				Node: node, Component: "device " + device.Name, Setting: "step of " + string(key),
				Expected: fmt.Sprintf("at most %s: the webhook takes it for that", most.String()), Detected: step.String(),
			})
		}
	}
	return findings
}

// uncountedPod finds pods that request less than their claims hold.
func uncountedPod(f *Facts) (findings []Finding) {
	for _, pod := range f.balance().Pods {
		for _, name := range slices.Sorted(maps.Keys(pod.Uncounted)) {
			findings = append(findings, Finding{
				Node: pod.Node, Component: "Pod " + pod.Namespace + "/" + pod.Name, Setting: "requests." + string(name),
				Expected: text(pod.Uncounted, name) + " more, because its claims hold " + text(pod.Held, name),
				Detected: text(pod.Requested, name),
			})
		}
	}
	return findings
}

// unclaimedHugepages finds pods without a claim that use hugepages of a node with zones.
func unclaimedHugepages(f *Facts) (findings []Finding) {
	nodes := make(map[string]bool)
	for _, slice := range f.zones() {
		nodes[*slice.Spec.NodeName] = true
	}
	for _, pod := range f.Objects.Pods {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !nodes[pod.Spec.NodeName] || ended || len(pod.Spec.ResourceClaims) > 0 {
			continue
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			unclaimed := accounting.UnclaimedHugepages(container, nil)
			for _, name := range slices.Sorted(maps.Keys(unclaimed)) {
				findings = append(findings, Finding{
					Node: pod.Spec.NodeName, Component: "Pod " + pod.Namespace + "/" + pod.Name, Setting: "limits." + string(name) + " of " + container.Name,
					Expected: "a claim for hugepages of a zone", Detected: text(unclaimed, name) + " without a claim, which may be those of a claim",
				})
			}
		}
	}
	return findings
}

// text returns an amount in the form of manifests, or 0 if there is none.
func text(list corev1.ResourceList, name corev1.ResourceName) string {
	amount := list[name]
	return amount.String()
}
