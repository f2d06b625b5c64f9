package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
)

// maxGroups are shown of nodes of which different things are to be said.
const maxGroups = 10

// explanation is the answer for people: the sentence, what helps, then the nodes,
// those of which the same is to be said together.
func explanation(e simulate.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Pod+e.Claim, e.Sentence)
	for _, hint := range e.Hints {
		fmt.Fprintf(&b, "hint: %s\n", hint)
	}
	legend := false
	groups := e.SameNodes()
	for _, group := range groups[:min(len(groups), maxGroups)] {
		node := group[0]
		var names []string
		for _, n := range group {
			names = append(names, n.Node)
		}
		sentence := node.Sentence
		if node.Feasible {
			sentence = "can have it"
		}
		fmt.Fprintf(&b, "\n%s: %s\n", nodeNames(names), sentence)
		b.WriteString(funnels(node.Requests))
		legend = legend || len(node.Requests) > 0
	}
	if more := len(groups) - maxGroups; more > 0 {
		fmt.Fprintf(&b, "\nOther nodes have %d more answers, -o json has them all.\n", more)
	}
	if legend {
		b.WriteString("\nThe numbers are devices: those of the node, and what is left of them after each\ncolumn. * is where too few are.\n")
	}
	return b.String()
}

// nodeNames are the first of them.
func nodeNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxNodes)], ", ")
	if more := len(names) - maxNodes; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// funnels is a line for each request.
func funnels(requests []funnel.Request) string {
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
