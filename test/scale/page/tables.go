package page

import (
	"fmt"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

func (p Page) measured(nodes int) string {
	return fmt.Sprintf("## %d nodes\nMedians of the pairs. Latency is the time from the creation of a pod until it has a node. All pods are created at once, so\n"+
		"most of it is waiting. PreFilter is the time for which the scheduler runs these plugins for a pod, before it\n"+
		"looks at any node. It grows with the claims of the whole cluster. Memory is that of the\n"+
		"process after the last pod; its earlier trials count too.\n\n", nodes) +
		plot.Table(header, p.rows(nodes))
}

var header = []string{"shape", "pods/s", "latency, p50", "p99", "scheduler's CPU time per pod", "PreFilter per pod", "API server", "etcd", "slices of a node"}

func (p Page) rows(nodes int) (rows [][]string) {
	for _, s := range p.Shapes {
		results := p.of(nodes, s.Name)
		if len(results) == 0 {
			continue
		}
		of := func(f figure) float64 { return median(results, f) }
		rows = append(rows, []string{
			s.Name,
			plot.Number(of(rate)),
			plot.Duration(of(func(r trial.Result) float64 { return float64(r.P50) })),
			plot.Duration(of(func(r trial.Result) float64 { return float64(r.P99) })),
			plot.Duration(of(cpu)),
			plot.Duration(of(preFilter)),
			mib(int64(of(func(r trial.Result) float64 { return float64(r.APIServerBytes) }))),
			mib(int64(of(func(r trial.Result) float64 { return float64(r.EtcdBytes) }))),
			fmt.Sprintf("%d B", s.SliceBytes()),
		})
	}
	return rows
}

const growthSection = "## Growth\n![The scheduler's CPU time for a pod over the number of nodes](" + growthFigure + ")\n"

// growth is the scheduler's CPU time over the nodes, of shapes that are no variants and run with
// each of them.
func (p Page) growth() plot.Lines {
	f := plot.Lines{Title: "Scheduler's CPU time for a pod", XLabel: "nodes"}
	for _, nodes := range p.sizes() {
		f.X = append(f.X, float64(nodes))
	}
	for _, s := range p.Shapes {
		if s.Variant || s.OneSize {
			continue
		}
		line := plot.Line{Name: s.Name}
		for _, nodes := range p.sizes() {
			line.Y = append(line.Y, median(p.of(nodes, s.Name), cpu))
		}
		f.Lines = append(f.Lines, line)
	}
	return f
}

// tooMuch is "" if no trial had pods that fit nowhere.
func (p Page) tooMuch() string {
	for _, nodes := range p.sizes() {
		ours := p.filter(nodes, shape.Ours, tooMuch)
		if len(ours) == 0 {
			continue
		}
		var rows [][]string
		for _, s := range p.Shapes {
			results := p.filter(nodes, s.Name, tooMuch)
			if len(results) == 0 {
				continue
			}
			timeouts := 0
			for _, r := range results {
				timeouts += r.Timeouts
			}
			rows = append(rows, []string{
				s.Name, plot.Number(median(results, rate)), plot.Duration(median(results, func(r trial.Result) float64 { return float64(r.P99) })),
				plot.Duration(median(results, cpu)), fmt.Sprintf("%d of %d", timeouts, len(results)*ours[0].Load.TooMuch),
			})
		}
		return fmt.Sprintf("## Pods that fit nowhere\nBefore the pods that fit, others are created whose claims ask for more than any NUMA node has. Each trial with %d nodes has\n"+
			"%d pods that fit, and this many that fit nowhere: %d.\n\n",
			nodes, ours[0].Load.Pods, ours[0].Load.TooMuch) +
			plot.Table([]string{"shape", "pods/s", "latency, p99", "scheduler's CPU time per pod that fits", "scheduler out of time"}, rows)
	}
	return ""
}

// attributes is "" if no variant with fewer attributes ran.
func (p Page) attributes() string {
	text := ""
	for _, nodes := range p.sizes() {
		ours := p.of(nodes, shape.Ours)
		var counts, costs []float64
		var rows [][]string
		for _, s := range p.Shapes {
			if s.Name != shape.Ours && !s.Variant {
				continue
			}
			results := p.of(nodes, s.Name)
			counts, costs = append(counts, float64(s.AttributeCount())), append(costs, median(results, cpu))
			rows = append(rows, []string{
				fmt.Sprint(s.AttributeCount()), plot.Number(median(results, rate)), interval(stats.Ratio(values(results, rate), values(ours, rate))),
				plot.Duration(median(results, cpu)), interval(stats.Ratio(values(results, cpu), values(ours, cpu))),
			})
		}
		if len(rows) < 2 {
			return ""
		}
		slope := stats.Slope(counts, costs)
		text += fmt.Sprintf("\nWith %d nodes, each attribute costs %s of the scheduler's CPU time for a pod, %.1f %% of all.\n\n", nodes,
			signed(slope), 100*slope/median(ours, cpu)) +
			plot.Table([]string{"attributes of a zone", "pods/s", "/ all attributes", "scheduler's CPU time per pod", "/ all attributes"}, rows)
	}
	return "## What attributes cost\nThe scheduler converts all attributes of a device before it evaluates a selector. These variants of this driver publish\n" +
		"only the first attributes of [the list](zones.md).\n" + text
}

// signed is a time that may be negative, because the line fits noise.
func signed(ns float64) string {
	if ns < 0 {
		return "-" + plot.Duration(-ns)
	}
	return duration(time.Duration(ns))
}

func (p Page) shapes() string {
	var rows [][]string
	for _, s := range p.Shapes {
		rows = append(rows, []string{s.Name, s.Means})
	}
	return "## Shapes\n" + plot.Table([]string{"shape", "what it is"}, rows)
}

var notes = fmt.Sprintf(`## What is measured
- **The machine** of every node has 64 CPUs and 128 GiB in 4 NUMA nodes. Package `+"`numa/fake`"+` generates it, and the driver's own
  code makes the slices. %d pods fit on it in each shape, but %d where each has a GPU.
- **Pods** ask for %d CPUs and %s in their requests, and the same in a claim that the controllers make from a template. Only
  one shape is published at a time. Its pods and slices are deleted before the next one.
- **One size only:** GPUs, nodes of which three quarters are taken, and claims of another driver run with 500 nodes, or with the
  most if there are no 500. Pods that fit nowhere, nodes that are nearly full, and larger claims run with the fewest.
- **The control plane** has the defaults of Kubernetes, but scheduler and controllers may send as many requests as they can,
  etcd does not wait for the disk, and the node-lifecycle controller is off. Each number of nodes has a control plane of its
  own. All programs, and the one that creates the pods, share the CPUs of this machine. PreFilter is the scheduler's own
  histogram of the time on the clock, so it also has the time for which others have the CPUs.
`, PodsPerNode, shape.GPUsPerNode, shape.PodCPUs, shape.PodMemory)
