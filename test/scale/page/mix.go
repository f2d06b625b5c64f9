package page

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// taken is "" if no trial began with nodes of which three quarters were taken.
func (p Page) taken() string {
	nodes := OneSize(p.sizes())
	ours := p.filter(nodes, shape.Ours, taken)
	if len(ours) == 0 {
		return ""
	}
	var rows [][]string
	for _, s := range p.Shapes {
		full, empty := p.filter(nodes, s.Name, taken), p.of(nodes, s.Name)
		if len(full) == 0 {
			continue
		}
		rows = append(rows, []string{
			s.Name, plot.Number(median(empty, rate)), plot.Number(median(full, rate)), interval(stats.Ratio(values(full, rate), values(empty, rate))),
			plot.Duration(median(empty, cpu)), plot.Duration(median(full, cpu)), plot.Duration(median(full, preFilter)),
			interval(stats.Ratio(values(ours, rate), values(full, rate))),
		})
	}
	return fmt.Sprintf("## Nodes of which three quarters are taken\nBefore the trial, other claims hold three of the four NUMA nodes of each of the %d nodes, or 6 of its 8 GPUs: all of their CPUs, a\n"+
		"claim for each. A pod of each node has as many CPUs in its requests. The trials ran in turn with those on empty nodes. This\n"+
		"driver publishes full zones last, as it does on real nodes.\n\n", nodes) +
		plot.Table([]string{
			"shape", "pods/s, empty", "75 % full", "75 % full / empty", "scheduler's CPU time per pod, empty", "75 % full", "PreFilter per pod, 75 % full",
			"pods/s of this driver / of this shape, 75 % full",
		}, rows)
}

// fragmented is "" if no trial began with nodes that are nearly full.
func (p Page) fragmented() string {
	nodes := p.sizes()[0]
	ours := p.filter(nodes, shape.Ours, fragmented)
	if len(ours) == 0 {
		return ""
	}
	var rows [][]string
	for _, s := range p.Shapes {
		results := p.filter(nodes, s.Name, fragmented)
		if len(results) == 0 {
			continue
		}
		rows = append(rows, []string{
			s.Name, plot.Number(median(results, rate)), plot.Duration(median(results, func(r trial.Result) float64 { return float64(r.P99) })),
			plot.Duration(median(results, cpu)), interval(stats.Ratio(values(ours, rate), values(results, rate))),
		})
	}
	return fmt.Sprintf("## Nodes that are nearly full\nBefore the trial, other claims hold NUMA nodes, so that no pod of the trial fits there: %d of them. Each of the %d nodes\n"+
		"still has more CPUs than a pod needs, but only %d NUMA nodes have them. The trial has %d pods.\n\n",
		ours[0].Load.Fill, nodes, nodes*ZonesPerNode-ours[0].Load.Fill, ours[0].Load.Pods) +
		plot.Table([]string{"shape", "pods/s", "latency, p99", "scheduler's CPU time per pod", "pods/s of this driver / of this shape"}, rows)
}

// foreign is "" if no trial had claims of another driver in the cluster.
func (p Page) foreign() string {
	nodes := OneSize(p.sizes())
	var rows [][]string
	claims := 0
	for _, s := range p.Shapes {
		with, without := p.filter(nodes, s.Name, foreign), p.of(nodes, s.Name)
		if len(with) == 0 {
			continue
		}
		claims = with[0].Load.Foreign
		rows = append(rows, []string{
			s.Name, plot.Number(median(with, rate)), interval(stats.Ratio(values(with, rate), values(without, rate))),
			plot.Duration(median(with, cpu)), interval(stats.Ratio(values(with, cpu), values(without, cpu))),
			plot.Duration(median(with, preFilter)), plot.Duration(median(without, preFilter)),
		})
	}
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("## Claims of another driver\nBefore the trial, %d claims hold shares of the devices of another driver, on nodes that are not among the %d nodes. The trials ran\n"+
		"in turn with those without such claims. Kubernetes 1.37 looks at all shares of the cluster if a device that can be shared is\n"+
		"free ([upstream.md](upstream.md#the-scan-of-all-shares)).\n\n", claims, nodes) +
		plot.Table([]string{"shape", "pods/s", "/ without", "scheduler's CPU time per pod", "/ without", "PreFilter per pod", "without"}, rows)
}

// gpus are the trials of GPUs alone, and beside this driver.
func (p Page) gpus() (alone, beside []trial.Result) {
	nodes := OneSize(p.sizes())
	return p.of(nodes, shape.GPU), p.of(nodes, shape.Beside)
}

// beside is "" if no claims of GPUs ran.
func (p Page) beside() string {
	alone, beside := p.gpus()
	if len(beside) == 0 {
		return ""
	}
	var rows [][]string
	for _, results := range [][]trial.Result{alone, beside} {
		rows = append(rows, []string{
			results[0].Shape, plot.Number(median(results, rate)), interval(stats.Ratio(values(results, rate), values(alone, rate))),
			plot.Duration(median(results, cpu)), interval(stats.Ratio(values(results, cpu), values(alone, cpu))),
		})
	}
	return fmt.Sprintf("## A GPU driver on the same nodes\nWhat the zones of this driver cost claims of GPUs, which do not ask for any: %d nodes, each with %d GPUs.\n\n", alone[0].Nodes, shape.GPUsPerNode) +
		plot.Table([]string{"shape", "pods/s", "/ alone", "scheduler's CPU time per pod", "/ alone"}, rows)
}

// mixed is "" if no claims with more requests ran.
func (p Page) mixed() string {
	if len(p.Mixes) == 0 {
		return ""
	}
	nodes := p.sizes()[0]
	first := p.of(nodes, p.Mixes[0].Name)
	var rows, means [][]string
	for _, s := range p.Mixes {
		results := p.of(nodes, s.Name)
		rows = append(rows, []string{
			s.Name, plot.Number(median(results, rate)), interval(stats.Ratio(values(results, rate), values(first, rate))),
			plot.Duration(median(results, cpu)), interval(stats.Ratio(values(results, cpu), values(first, cpu))),
		})
		means = append(means, []string{s.Name, s.Means})
	}
	return fmt.Sprintf("## Larger claims\nClaims of this driver that ask for more than CPUs and memory. The nodes, %d of them, also publish %d GPUs, %d NICs and a cache for\n"+
		"each NUMA node: %d B of slices for each node. Each trial has %d pods.\n\n", nodes, shape.MixesPerNode, shape.MixesPerNode, p.Mixes[0].SliceBytes(), first[0].Load.Pods) +
		plot.Table([]string{"claim", "pods/s", "/ the first", "scheduler's CPU time per pod", "/ the first"}, rows) + "\n" +
		plot.Table([]string{"claim", "what it is"}, means)
}
