package diagnosis

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
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
		if step := *policy.ValidRange.Step; !spelling.Countable(step) || step.Cmp(most) > 0 {
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

// unclaimedHugepages finds pods without a claim that use hugepages of a node with zones. A
// NodeConfig can reserve hugepages for such pods (reservedHugepages): then zones publish
// less than the node has. As long as the pods fit into that, they are no finding.
func unclaimedHugepages(f *Facts) (findings []Finding) {
	reserved := make(map[string]corev1.ResourceList)
	for _, node := range f.balance().Nodes {
		reserved[node.Name] = corev1.ResourceList{}
		for name, amount := range node.Allocatable {
			amount = amount.DeepCopy()
			amount.Sub(node.Published[name])
			if amount.Sign() > 0 {
				reserved[node.Name][name] = amount
			}
		}
	}
	var pods []*corev1.Pod
	used := make(map[string]corev1.ResourceList)
	for _, pod := range f.Objects.Pods {
		if reserved[pod.Spec.NodeName] == nil || snapshot.Finished(pod) || len(pod.Spec.ResourceClaims) > 0 {
			continue
		}
		pods = append(pods, pod)
		if used[pod.Spec.NodeName] == nil {
			used[pod.Spec.NodeName] = corev1.ResourceList{}
		}
		for name, amount := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
			sum := used[pod.Spec.NodeName][name]
			sum.Add(amount)
			used[pod.Spec.NodeName][name] = sum
		}
	}
	for _, pod := range pods {
		room, sums := reserved[pod.Spec.NodeName], used[pod.Spec.NodeName]
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			unclaimed := accounting.UnclaimedHugepages(container, nil)
			for _, name := range slices.Sorted(maps.Keys(unclaimed)) {
				if sum := sums[name]; sum.Cmp(room[name]) <= 0 {
					continue
				}
				findings = append(findings, Finding{
					Node: pod.Spec.NodeName, Component: "Pod " + pod.Namespace + "/" + pod.Name, Setting: "limits." + string(name) + " of " + container.Name,
					Expected: "a claim for hugepages of a zone, or at most " + text(room, name) + " in all pods without claims",
					Detected: text(unclaimed, name) + " without a claim, which may be those of a claim",
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
