package page

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
)

// Growth is measured from the first of these numbers of nodes to the second.
const (
	SmallGrowth = 500
	LargeGrowth = 5000
)

// InGrowth says whether a shape is on the page about growth: this driver, and what any claim
// costs at least.
func InGrowth(s shape.Shape) bool {
	return s.Name == shape.Ours || s.Name == shape.Cheapest || s.Name == shape.Selected
}

const growthIntroduction = `<!-- make scale-growth writes this page. Do not edit it. -->
# Scheduling on 5,000 nodes
This page shows how much longer a pod takes the scheduler in a larger cluster. [Scheduling at scale](scale.md) says what the
shapes are, and what is measured. ` + "`make scale-growth`" + ` measures everything again and writes this page.

The shapes` + method

// WriteGrowth writes the page about growth to the folder.
func (p Page) WriteGrowth(folder string) error {
	text, err := p.renderGrowth()
	if err != nil {
		return err
	}
	return write(folder, growthPage, text, nil)
}

func (p Page) renderGrowth() (string, error) {
	if err := p.complete(); err != nil {
		return "", err
	}
	sections := []string{growthIntroduction, p.machine() + relation(scalePage), p.grown()}
	for _, nodes := range p.sizes() {
		sections = append(sections, p.measured(nodes))
	}
	return strings.Join(sections, "\n"), nil
}

// grown is how much each shape grows, and this driver more than the others, which show what any claim costs at least.
func (p Page) grown() string {
	sizes := p.sizes()
	small, large := sizes[0], sizes[len(sizes)-1]
	grown := func(name string, of figure) (more, less []float64) {
		return values(p.of(large, name), of), values(p.of(small, name), of)
	}
	row := func(other string) []string {
		large, small := grown(shape.Ours, rate)
		otherLarge, otherSmall := grown(other, rate)
		return []string{other, interval(stats.Ratio(product(large, otherSmall), product(small, otherLarge)))}
	}
	var rows [][]string
	for _, s := range p.Shapes {
		moreTime, lessTime := grown(s.Name, cpu)
		morePods, lessPods := grown(s.Name, rate)
		rows = append(rows, []string{s.Name, interval(stats.Ratio(morePods, lessPods)), interval(stats.Ratio(moreTime, lessTime))})
	}
	return fmt.Sprintf("## Growth\nPods per second with %d nodes / those with %d nodes, of this driver / of another shape. It is 1 if a larger cluster\n"+
		"slows both down alike.\n\n", large, small) +
		plot.Table([]string{"other shape", "growth of this driver / of the other shape"}, [][]string{row(shape.Cheapest), row(shape.Selected)}) +
		fmt.Sprintf("\n%d nodes / %d nodes:\n\n", large, small) +
		plot.Table([]string{"shape", "pods/s", "scheduler's CPU time per pod"}, rows) +
		fmt.Sprintf("\nFor a pod, the scheduler looks for %d nodes where it fits in a cluster of %d nodes, and for %d in one of %d:\n"+
			"%s times as many. What a shape costs for each of these nodes grows alike, and the rest does not.\n", looksFor(small), small, looksFor(large), large, plot.Number(float64(looksFor(large))/float64(looksFor(small))))
}

// looksFor is how many nodes that fit the scheduler looks for, by default
// (numFeasibleNodesToFind in pkg/scheduler/schedule_one.go).
func looksFor(nodes int) int {
	const fewest, fewestPercent = 100, 5
	return min(nodes, max(nodes*max(50-nodes/125, fewestPercent)/100, fewest))
}

func product(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] * b[i]
	}
	return all
}
