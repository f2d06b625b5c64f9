package page

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
)

// goals are for the scheduler's CPU time of another shape / that of this driver. The cheapest claims have none: they show
// what any claim costs at least.
var goals = []struct {
	nodes int
	other string
	least float64
}{
	{500, shape.Split, 1.5},
	{2000, shape.Split, 1.8},
}

// besideGoal is for claims of GPUs: pods per second beside this driver / alone.
const besideGoal = 1 / 1.5

// Judged are the names of the two shapes of each goal with so many nodes, of these sizes. No shape is in two of them.
func Judged(nodes int, sizes []int) (pairs [][]string) {
	for _, goal := range goals {
		if goal.nodes == nodes {
			pairs = append(pairs, []string{shape.Ours, goal.other})
		}
	}
	if nodes == OneSize(sizes) {
		pairs = append(pairs, []string{shape.GPU, shape.Beside})
	}
	return pairs
}

// ratio compares this driver with another shape.
type ratio struct {
	nodes int
	other string
	rate  stats.Interval // pods per second of this driver / those of the other shape
	cpu   stats.Interval // the scheduler's CPU time of the other shape / that of this driver
	least float64        // the goal for it; 0: there is none
}

// ratios are those with each other shape at each size.
func (p Page) ratios() (list []ratio) {
	for _, nodes := range p.sizes() {
		ours := values(p.of(nodes, shape.Ours), rate)
		for _, other := range []string{shape.Plain, shape.Cheapest, shape.Selected, shape.GPU, shape.Split, shape.PerCPU} {
			if len(p.of(nodes, other)) == 0 {
				continue
			}
			r := ratio{
				nodes: nodes, other: other, rate: stats.Ratio(ours, values(p.of(nodes, other), rate)),
				cpu: stats.Ratio(values(p.of(nodes, other), cpu), values(p.of(nodes, shape.Ours), cpu)),
			}
			for _, goal := range goals {
				if goal.nodes == nodes && goal.other == other {
					r.least = goal.least
				}
			}
			list = append(list, r)
		}
	}
	return list
}

func (p Page) goals(ratios []ratio) string {
	var rows [][]string
	goal := func(what, limit, measured string, verdict compare.Verdict) {
		rows = append(rows, []string{what, limit, measured, "**" + string(verdict) + "**"})
	}
	for _, r := range ratios {
		if r.least > 0 {
			goal(fmt.Sprintf("scheduler's CPU time, %d nodes, %s / this driver", r.nodes, r.other), "≥ "+plot.Number(r.least), interval(r.cpu), r.cpu.AtLeast(r.least))
		}
	}
	if alone, beside := p.gpus(); len(beside) > 0 {
		r := stats.Ratio(values(beside, rate), values(alone, rate))
		goal(fmt.Sprintf("pods/s, %d nodes, %s / alone", beside[0].Nodes, shape.Beside), "≥ 1/1.5", interval(r), r.AtLeast(besideGoal))
	}
	if ours, perCPU, ran := p.timeouts(); ran {
		goal("pods for which the scheduler runs out of time, of those that fit nowhere", "0", fmt.Sprintf("%d; %s: %d", ours, shape.PerCPU, perCPU), timeoutVerdict(ours, perCPU))
	}
	if len(rows) == 0 {
		return "## Goals\nThe goals are for 500 nodes and more. None was measured.\n"
	}
	return p.goalSection("make scale", rows)
}

// goalSection has a row for each goal: what, goal, measured, and verdict. A machine that was busy has no verdicts.
func (c Conditions) goalSection(command string, rows [][]string) string {
	header := []string{"what", "goal", "measured", "verdict"}
	if !host.Busy(c.Machine.Load) {
		return "## Goals\nA goal is met if the whole range meets it, and missed if nothing of the range does. In between it is not decided.\n\n" + plot.Table(header, rows)
	}
	for i, row := range rows {
		rows[i] = row[:3]
	}
	return "## Goals\n" + host.Unjudged(command) + "\n" + plot.Table(header[:3], rows)
}

// timeouts counts the pods of the trials with pods that fit nowhere for which the
// scheduler ran out of time.
func (p Page) timeouts() (ours, perCPU int, ran bool) {
	for _, nodes := range p.sizes() {
		for _, r := range p.filter(nodes, shape.Ours, tooMuch) {
			ours, ran = ours+r.Timeouts, true
		}
		for _, r := range p.filter(nodes, shape.PerCPU, tooMuch) {
			perCPU += r.Timeouts
		}
	}
	return ours, perCPU, ran
}

// timeoutVerdict: where no shape runs out of time, the trial shows nothing.
func timeoutVerdict(ours, perCPU int) compare.Verdict {
	switch {
	case ours > 0:
		return compare.Missed
	case perCPU > 0:
		return compare.Met
	}
	return compare.NotDecided
}

func interval(i stats.Interval) string {
	return fmt.Sprintf("%s (%s to %s)", plot.Number(i.Ratio), plot.Number(i.Low), plot.Number(i.High))
}

func ratioSection(ratios []ratio) string {
	var rows [][]string
	for _, r := range ratios {
		rows = append(rows, []string{fmt.Sprint(r.nodes), r.other, interval(r.rate), interval(r.cpu)})
	}
	return "## Ratios\n![The scheduler's CPU time for a pod of the other shapes divided by that of this driver, with the goals](" + ratiosFigure + ")\n\n" +
		"Pods per second of this driver / those of another shape, and the scheduler's CPU time for a pod of the other shape / that of\n" +
		"this driver. More is better. All programs share the CPUs of this machine, so a scheduler that needs half the time places\n" +
		"less than twice the pods.\n\n" + plot.Table([]string{"nodes", "other shape", "pods/s", "scheduler's CPU time"}, rows)
}

func bars(ratios []ratio) plot.Bars {
	f := plot.Bars{Title: "Scheduler's CPU time for a pod of another shape / of this driver", Note: "more is better; the orange mark is the goal"}
	for _, r := range ratios {
		f.Bars = append(f.Bars, plot.Bar{Name: fmt.Sprintf("%d nodes, %s", r.nodes, r.other), Median: r.cpu.Ratio, Low: r.cpu.Low, High: r.cpu.High, Goal: r.least})
	}
	return f
}
