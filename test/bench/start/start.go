// Package start writes docs/bench-start.md from what make bench-start has measured on a node of
// the rig.
package start

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/startup"
)

// idleGoal is the share of the kubelet's CPU time that an idle driver may take.
const idleGoal = 0.08

const introduction = `<!-- make bench-start writes this page. Do not edit it. -->
# What a claim adds to the start of a pod
The same pod starts with a claim and without one, in turn, on a node of the [test rig](../test/rig/README.md). ` + "`make bench-start`" + `
measures everything again and writes this page; it takes 50 minutes on 2 CPUs that do nothing else.

A start begins when the kubelet sees that the pod is bound to its node, and ends when the container runs: the kubelet's log has
the first moment, and containerd's log the others. What the scheduler does before is in [scale.md](scale.md). **The node is
emulated, so times are about ten times those of hardware.** Beside 250 pods, its kubelet alone keeps 2 CPUs busy, and all parts
wait for CPUs; the load averages are those of the node. Differences and shares say which part is slow; the counts below are the
same everywhere.
`

// Write writes the page and its figure to the folder.
func Write(run startup.Run, machine host.Machine, folder string) error {
	text, figure := render(run, machine)
	return plot.WritePage(folder, "bench-start.md", text, map[string]string{"bench-start.svg": figure})
}

func render(run startup.Run, machine host.Machine) (text, figure string) {
	machine.Load = run.Load
	rows := append(machine.Rows(), [][]string{
		{"load averages after the benchmarks", run.LoadAfter},
		{"node", fmt.Sprintf("Linux %s, Kubernetes %s, %s", run.Kernel, run.Kubernetes, strings.Replace(run.Runtime, "://", " ", 1))},
		{"claim", run.Claim},
	}...)
	sections := []string{introduction, "## Machine\n" + plot.Table([]string{"what", "value"}, rows) + host.Note, goals(run)}
	drawn := plot.Stacks{Title: "Start of a pod, median of each part", XLabel: "milliseconds on an emulated node", Parts: startup.Parts()}
	for _, node := range run.Nodes {
		sections = append(sections, section(node))
		drawn.Rows = append(drawn.Rows,
			plot.Stack{Name: beside(node.Pods) + ", no claim", Values: medians(node.Pairs, without)},
			plot.Stack{Name: beside(node.Pods) + ", a claim", Values: medians(node.Pairs, with)})
	}
	sections = slices.Insert(sections, 3, "## Picture\n![Bars of the parts of a start with and without a claim](bench-start.svg)\n")
	return strings.Join(sections, "\n"), drawn.SVG()
}

func goals(run startup.Run) string {
	var rows [][]string
	for _, node := range run.Nodes {
		spread := compare.Spread{Median: node.IdleShare, Low: node.IdleShare, High: node.IdleShare}
		rows = append(rows, []string{
			fmt.Sprintf("CPU time of the idle driver / kubelet, %s", beside(node.Pods)), "≤ 0.08", plot.Number(node.IdleShare), "**" + string(spread.AtMost(idleGoal)) + "**",
		})
	}
	return "## Goals\n" + plot.Table([]string{"what", "goal", "measured", "verdict"}, rows)
}

func beside(pods int) string {
	if pods == 0 {
		return "few pods"
	}
	return fmt.Sprintf("%d other pods", pods)
}

func without(p startup.Pair) startup.Sample { return p.Without }
func with(p startup.Pair) startup.Sample    { return p.With }

func medians(pairs []startup.Pair, side func(startup.Pair) startup.Sample) (list []float64) {
	for part := range startup.Parts() {
		list = append(list, compare.Of(values(pairs, func(p startup.Pair) float64 { return side(p).Milliseconds[part] })).Median)
	}
	return list
}

func values(pairs []startup.Pair, of func(startup.Pair) float64) (list []float64) {
	for _, pair := range pairs {
		list = append(list, of(pair))
	}
	return list
}

func section(node startup.Node) string {
	part := func(name string, of func(startup.Sample) float64) []string {
		a := values(node.Pairs, func(p startup.Pair) float64 { return of(p.Without) })
		b := values(node.Pairs, func(p startup.Pair) float64 { return of(p.With) })
		added := values(node.Pairs, func(p startup.Pair) float64 { return of(p.With) - of(p.Without) })
		return []string{name, spread(compare.Middle(a)), spread(compare.Middle(b)), spread(compare.Middle(added)), spread(compare.MiddleRatio(b, a))}
	}
	rows := [][]string{part("**the whole start**", startup.Sample.Total)}
	for i, name := range startup.Parts() {
		rows = append(rows, part(name, func(s startup.Sample) float64 { return s.Milliseconds[i] }))
	}
	names := map[string]bool{}
	for _, pair := range node.Pairs {
		for name := range pair.With.Counts {
			names[name] = true
		}
	}
	var counts [][]string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		of := func(side func(startup.Pair) startup.Sample) string {
			return plot.Number(compare.Of(values(node.Pairs, func(p startup.Pair) float64 { return side(p).Counts[name] })).Median)
		}
		counts = append(counts, []string{name, of(without), of(with)})
	}
	title := beside(node.Pods)
	return fmt.Sprintf("## Beside %s\n%d pairs. Times are medians in milliseconds, with the middle half of the pairs.\n\n", title, len(node.Pairs)) +
		plot.Table([]string{"part", "without", "with a claim", "added", "with / without"}, rows) +
		"\nWhat is counted from the creation of the pod until 3 s after its start, medians:\n\n" +
		plot.Table([]string{"what", "without", "with a claim"}, counts)
}

func spread(s compare.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", plot.Number(s.Median), plot.Number(s.Low), plot.Number(s.High))
}
