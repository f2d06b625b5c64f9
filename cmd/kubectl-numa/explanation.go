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
		fmt.Fprintf(&b, "%s: %s\n", message.OneLine(e.Pod+e.Claim), message.OneLine(e.Sentence))
	}
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "note: %s\n", message.OneLine(note))
	}
	if e.Scheduler != "" {
		fmt.Fprintf(&b, "the scheduler says: %s\n", message.OneLine(e.Scheduler))
	}
	b.WriteString(unseenText(e.Unseen))
	b.WriteString(assumedText(e.Assumed))
	b.WriteString(scoreTable(e.Scores))
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
	return b.String() + hintsText(e.Hints, len(groups) > 0) + legend
}

// hintsText says what helps, after what is wrong with the nodes.
func hintsText(hints []string, apart bool) (text string) {
	for _, hint := range hints {
		text += "hint: " + message.OneLine(hint) + "\n"
	}
	if text != "" && apart {
		return "\n" + text
	}
	return text
}

// unseenText says what the reader of the cluster may not list.
func unseenText(unseen []string) string {
	if len(unseen) == 0 {
		return ""
	}
	return "there may be more obstacles, because you may not list: " + strings.Join(unseen, ", ") + "\n"
}

// workloadText returns what is said of a workload, and an empty line.
func workloadText(w *simulate.Workload) string {
	if w == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s: %s\n", w.Kind, message.OneLine(w.Name), w.Sentence)
	for _, o := range w.Obstacles {
		text += "- " + message.OneLine(o.Sentence) + "\n"
		if o.Hint != "" {
			text += "  hint: " + message.OneLine(o.Hint) + "\n"
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
	text := message.OneLine(strings.Join(names, ", "))
	if more := len(assumed) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more; -o json shows all of them", more)
	}
	if text == "" {
		return ""
	}
	return "assumed to be placed first: " + text + "\n"
}

// maxScores is the maximum number of nodes whose scores are shown.
const maxScores = 10

// scoreTable returns a table of the highest scores, with the plugins that make the
// difference. It is empty if all nodes have the same score.
func scoreTable(scores []simulate.NodeScore) string {
	var plugins []string
	for _, s := range scores {
		for plugin, part := range s.Plugins {
			if part != scores[0].Plugins[plugin] && !slices.Contains(plugins, plugin) {
				plugins = append(plugins, plugin)
			}
		}
	}
	if len(plugins) == 0 {
		return ""
	}
	slices.Sort(plugins)
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nscore\t%s\t  node\n", strings.Join(plugins, "\t"))
	for _, s := range scores[:min(len(scores), maxScores)] {
		fmt.Fprintf(table, "%d\t", s.Total)
		for _, plugin := range plugins {
			fmt.Fprintf(table, "%d\t", s.Plugins[plugin])
		}
		fmt.Fprintf(table, "  %s\n", s.Node)
	}
	table.Flush()
	text := trimLines(b.String())
	if more := len(scores) - maxScores; more > 0 {
		text += fmt.Sprintf("%d more nodes have lower or equal scores; -o json shows all of them\n", more)
	}
	return text
}

// nodeNames lists the first names, and says how many more there are.
func nodeNames(names []string) string { return message.OneLine(message.First(names, maxNodes)) }

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
			count(funnel.StageConstraint, r.Left.Constraint), message.OneLine(r.Claim), message.OneLine(r.Request))
	}
	table.Flush()
	return b.String()
}
