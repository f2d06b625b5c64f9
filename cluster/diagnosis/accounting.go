package diagnosis

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
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

// text returns an amount in the form of manifests, or 0 if there is none.
func text(list corev1.ResourceList, name corev1.ResourceName) string {
	amount := list[name]
	return amount.String()
}
