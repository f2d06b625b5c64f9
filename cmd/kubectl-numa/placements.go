package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
)

// placements is the result for people: a line for each device, then the pods
// that have none.
func placements(result simulate.Result) string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(result.Pods) > 0 {
		fmt.Fprintln(table, "POD\tNODE\tCLAIM\tREQUEST\tDEVICE\tCAPACITY")
	}
	for _, pod := range result.Pods {
		lines := 0
		for _, claim := range pod.Claims {
			for _, a := range claim.Allocations {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s/%s/%s\t%s\n", pod.Pod, pod.Node, claim.Name, a.Request, a.Driver, a.Pool, a.Device, consumed(a.ConsumedCapacity))
				lines++
			}
		}
		if lines == 0 {
			fmt.Fprintf(table, "%s\t%s\t\t\t\t\n", pod.Pod, pod.Node)
		}
	}
	table.Flush()
	text := trimLines(b.String())
	for _, pod := range result.Unschedulable {
		text += fmt.Sprintf("\n%s has no node\n", pod.Pod)
		for _, r := range byReason(pod.Reasons) {
			text += "  " + r + "\n"
		}
	}
	return strings.TrimPrefix(text, "\n")
}

// trimLines drops the blanks before the ends of lines.
func trimLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// consumed is "cpu 4, memory 8Gi", without what is 0.
func consumed(capacity map[resourceapi.QualifiedName]resource.Quantity) string {
	var parts []string
	for _, name := range sortedNames(capacity) {
		if amount := capacity[name]; !amount.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", name, amount.String()))
		}
	}
	return strings.Join(parts, ", ")
}

// sortedNames are the keys in order.
func sortedNames[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// maxNodes are named before a reason that many have.
const maxNodes = 3

// byReason is a line for each reason, in the order in which they come, with the
// nodes that have it.
func byReason(refusals []simulate.Refusal) (lines []string) {
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
		lines = append(lines, text+reason)
	}
	if more := len(reasons) - maxGroups; more > 0 {
		lines = append(lines, fmt.Sprintf("other nodes: %d more reasons, -o json has them all", more))
	}
	return lines
}
