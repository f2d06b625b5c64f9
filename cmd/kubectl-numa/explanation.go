package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// maxGroups is the maximum number of different answers for nodes that are shown.
const maxGroups = 10

// requestLegend explains the columns of requestTable.
const requestLegend = `
The numbers count devices. "of" is all devices of the node. Each column after it
is what is left after that check. * marks the first check that leaves too few.
`

// explanationText returns the answer for people: the sentence, the hints, then the
// nodes. Nodes with the same answer form a group.
func explanationText(e simulate.Explanation) string {
	var b strings.Builder
	b.WriteString(workloadText(e.Workload))
	if e.Pod+e.Claim != "" {
		fmt.Fprintf(&b, "%s: %s\n", e.Pod+e.Claim, message.OneLine(e.Sentence))
	}
	for _, hint := range e.Hints {
		fmt.Fprintf(&b, "hint: %s\n", message.OneLine(hint))
	}
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	if e.Scheduler != "" {
		fmt.Fprintf(&b, "the scheduler says: %s\n", message.OneLine(e.Scheduler))
	}
	if len(e.Unseen) > 0 {
		fmt.Fprintf(&b, "there may be more obstacles, because you may not list: %s\n", strings.Join(e.Unseen, ", "))
	}
	b.WriteString(assumedText(e.Assumed))
	legend := ""
	groups := e.SameNodes()
	for _, group := range groups[:min(len(groups), maxGroups)] {
		node := group[0]
		var names []string
		for _, n := range group {
			names = append(names, n.Node)
		}
		text := obstaclesText(node, len(group) > 1)
		if node.Feasible && len(e.Unseen) > 0 {
			text = "may fit\n"
		}
		fmt.Fprintf(&b, "\n%s: %s", nodeNames(names), text)
		if len(node.Requests) > 0 && (node.Feasible || slices.ContainsFunc(node.Obstacles, aboutDevices)) {
			b.WriteString(requestTable(node.Requests))
			legend = requestLegend
		}
	}
	if more := len(groups) - maxGroups; more > 0 {
		fmt.Fprintf(&b, "\nThere are %d more answers for other nodes; -o json shows all of them.\n", more)
	}
	return b.String() + legend
}

// workloadText returns what is said of a workload, and an empty line.
func workloadText(w *simulate.Workload) string {
	if w == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s: %s\n", w.Kind, w.Name, w.Sentence)
	for _, o := range w.Obstacles {
		text += "- " + o.Sentence + "\n"
		if o.Hint != "" {
			text += "  hint: " + o.Hint + "\n"
		}
	}
	return text + "\n"
}

func aboutDevices(o funnel.Obstacle) bool {
	return o.Stage != funnel.StageNode && o.Stage != funnel.StageStart
}

// maxHolders is the maximum number of holders of what is missing that are named.
const maxHolders = 5

// obstaclesText lists the obstacles of a node, and who holds what is missing. If other
// nodes have the same obstacles, it says on which node these holders are.
func obstaclesText(node simulate.NodeExplanation, others bool) string {
	var b strings.Builder
	switch {
	case node.Feasible:
		return "fits\n"
	case len(node.Obstacles) > 1:
		fmt.Fprintf(&b, "%d obstacles\n", len(node.Obstacles))
	}
	for _, o := range node.Obstacles {
		if len(node.Obstacles) > 1 {
			b.WriteString("- ")
		}
		b.WriteString(message.OneLine(o.Sentence) + "\n")
		for _, holder := range o.HeldBy[:min(len(o.HeldBy), maxHolders)] {
			b.WriteString("  ")
			if others {
				b.WriteString("on " + node.Node + ", ")
			}
			b.WriteString(message.OneLine(holder.String()) + "\n")
		}
		if more := len(o.HeldBy) - maxHolders; more > 0 {
			fmt.Fprintf(&b, "  and %d more; -o json shows all of them\n", more)
		}
	}
	return b.String()
}

// maxAssumed is the maximum number of pods that are named as placed first.
const maxAssumed = 5

// assumedText names the pods that are assumed to be placed first.
func assumedText(assumed []simulate.Placed) string {
	var names []string
	for _, placed := range assumed[:min(len(assumed), maxAssumed)] {
		names = append(names, placed.Pod+" on "+placed.Node)
	}
	text := strings.Join(names, ", ")
	if more := len(assumed) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more; -o json shows all of them", more)
	}
	if text == "" {
		return ""
	}
	return "assumed to be placed first: " + text + "\n"
}

// nodeNames lists the first names, and says how many more there are.
func nodeNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxNodes)], ", ")
	if more := len(names) - maxNodes; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// requestTable returns a table with a line for each request.
func requestTable(requests []funnel.Request) string {
	if len(requests) == 0 {
		return ""
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "wants\tof\tdriver\tclass\tselector\ttaint\tin use\tcapacity\tmatch\t  request")
	for _, r := range requests {
		count := func(stage funnel.Stage, left int) string {
			if r.Blocks == stage {
				return "*" + strconv.Itoa(left)
			}
			return strconv.Itoa(left)
		}
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s/%s\n", r.Wanted, r.Devices,
			count(funnel.StageDriver, r.Left.Driver), count(funnel.StageClass, r.Left.Class), count(funnel.StageSelector, r.Left.Selector),
			count(funnel.StageTaint, r.Left.Taint), count(funnel.StageInUse, r.Left.InUse), count(funnel.StageCapacity, r.Left.Capacity),
			count(funnel.StageConstraint, r.Left.Constraint), r.Claim, r.Request)
	}
	table.Flush()
	return b.String()
}
