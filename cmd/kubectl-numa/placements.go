package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// placementsText returns the result for people: a line for each device, then the pods
// without a node.
func placementsText(s style, result simulate.Result) string {
	var rows [][]string
	if len(result.Pods) > 0 {
		rows = append(rows, []string{"POD", "NODE", "CLAIM", "REQUEST", "DEVICE", "CAPACITY"})
	}
	for _, pod := range result.Pods {
		before := len(rows)
		for _, claim := range pod.Claims {
			for _, a := range claim.Allocations {
				device := a.Driver + "/" + a.Pool + "/" + a.Device
				rows = append(rows, []string{pod.Pod, pod.Node, claim.Name, a.Request, device, capacityText(a.ConsumedCapacity)})
			}
		}
		if len(rows) == before {
			rows = append(rows, []string{pod.Pod, pod.Node, "", "", "", ""})
		}
	}
	text := s.table(rows, 0)
	for _, pod := range result.Unschedulable {
		text += fmt.Sprintf("\n%s has no node\n", pod.Pod)
		for _, line := range reasonLines(pod.Reasons) {
			text += "  " + line + "\n"
		}
	}
	return strings.TrimPrefix(text, "\n")
}

// capacityText returns a text such as "cpu 4, memory 8Gi". It omits amounts of 0.
func capacityText(capacity map[resourceapi.QualifiedName]resource.Quantity) string {
	var parts []string
	for _, name := range sortedNames(capacity) {
		if amount := capacity[name]; !amount.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", name, amount.String()))
		}
	}
	return strings.Join(parts, ", ")
}

// sortedNames returns the keys, sorted.
func sortedNames[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// maxNodes is the maximum number of nodes with the same reason that are named.
const maxNodes = 3

// reasonLines returns a line for each reason, with the nodes that have it, in the order
// of the refusals.
func reasonLines(refusals []simulate.Refusal) (lines []string) {
	nodes := make(map[string][]string)
	var reasons []string
	for _, r := range refusals {
		if nodes[r.Reason] == nil {
			reasons = append(reasons, r.Reason)
		}
		nodes[r.Reason] = append(nodes[r.Reason], r.Node)
	}
	for _, reason := range reasons[:min(len(reasons), maxGroups)] {
		text := nodeNames(nodes[reason])
		if text != "" {
			text += ": "
		}
		lines = append(lines, text+message.OneLine(reason))
	}
	if more := len(reasons) - maxGroups; more > 0 {
		lines = append(lines, fmt.Sprintf("other nodes: %d more reasons; -o json shows all of them", more))
	}
	return lines
}
