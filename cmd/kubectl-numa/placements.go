package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// placementColumns are those that every table of placements has.
const placementColumns columns = "POD,NODE,CLAIM,REQUEST,DEVICE,CAPACITY,FEASIBLE NODES"

// placementsText returns the result for people: a line for each device, then the pods
// without a node.
func placementsText(s style, result simulate.Result) string {
	scored := slices.ContainsFunc(result.Pods, func(pod simulate.Placed) bool { return len(pod.Scores) > 0 })
	var rows [][]string
	add := func(pod, node, claim, request, device, capacity, score, others, feasible string) {
		row := []string{pod, node, claim, request, device, capacity, feasible}
		if scored {
			row = []string{pod, node, score, claim, request, device, capacity, others, feasible}
		}
		rows = append(rows, row)
	}
	if len(result.Pods) > 0 {
		add("POD", "NODE", "CLAIM", "REQUEST", "DEVICE", "CAPACITY", "SCORE", "OTHER NODES", "FEASIBLE NODES")
	}
	for _, pod := range result.Pods {
		before, feasible := len(rows), strings.Join(pod.FeasibleNodes, ",")
		score, others := scoreTexts(pod)
		for _, claim := range pod.Claims {
			for _, a := range claim.Allocations {
				device := a.Driver + "/" + a.Pool + "/" + a.Device
				add(pod.Pod, pod.Node, claim.Name, a.Request, device, capacityText(a.ConsumedCapacity, a.Ways), score, others, feasible)
			}
		}
		if len(rows) == before {
			add(pod.Pod, pod.Node, "", "", "", "", score, others, feasible)
		}
	}
	text := s.table(rows, 1)
	if slices.ContainsFunc(result.Pods, func(pod simulate.Placed) bool {
		return len(pod.Scores) > 1 && pod.Scores[0].Total == pod.Scores[1].Total
	}) {
		text += tieLegend
	}
	for _, pod := range result.Unschedulable {
		text += fmt.Sprintf("\n%s has no node\n", message.OneLine(pod.Pod))
		for _, line := range reasonLines(pod.Reasons) {
			text += "  " + line + "\n"
		}
	}
	return strings.TrimPrefix(text, "\n")
}

// tieLegend is for pods for which several nodes have the highest score.
const tieLegend = `
The scheduler chooses any of the nodes with the highest score. simulate takes the first by name.
`

// scoreTexts returns the score of the pod's node, and the other nodes with the highest
// scores.
func scoreTexts(pod simulate.Placed) (score, others string) {
	var texts []string
	for _, s := range pod.Scores {
		if s.Node == pod.Node {
			score = strconv.FormatInt(s.Total, 10)
		} else if len(texts) < maxNodes {
			texts = append(texts, fmt.Sprintf("%s %d", s.Node, s.Total))
		}
	}
	others = strings.Join(texts, ", ")
	if more := pod.Among - 1 - len(texts); more > 0 {
		others += fmt.Sprintf(" and %d more", more)
	}
	return score, others
}

// capacityText returns a text such as "cpu 4, memory 8Gi". It omits amounts of 0. w may be
// nil.
func capacityText(amounts map[resourceapi.QualifiedName]resource.Quantity, w *simulate.Ways) string {
	var parts []string
	for _, name := range sortedNames(amounts) {
		amount := amounts[name]
		if amount.IsZero() {
			continue
		}
		text := fmt.Sprintf("%s %s", name, spelling.Text(amount))
		if w != nil && spelling.Capacity(deviceclasses.DriverName, name) == deviceclasses.CapacityWays {
			text += growthText(w)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// growthText follows the ways that a claim always has.
func growthText(w *simulate.Ways) string {
	switch {
	case w.Reachable != 0:
		return fmt.Sprintf(" (reaches %d, at most %d)", w.Reachable, w.Max)
	case w.Max != 0:
		return fmt.Sprintf(" (at most %d)", w.Max)
	}
	return " (at least)"
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
