// Package page writes the page of scale, docs/scale.md, and its figures. It shows what was
// measured, and judges goals only by intervals of package stats.
package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// How many pods fit on a node, and how many NUMA nodes it has.
const (
	PodsPerNode  = 16
	ZonesPerNode = 4
)

// Conditions are those under which trials ran.
type Conditions struct {
	Machine    host.Machine
	LoadAfter  string // load averages when the trials ended
	Took       time.Duration
	Kubernetes string // version
	Pods       int    // of a trial
	Pairs      int    // how often each shape, or order, ran
	GoalPairs  int    // how often the two shapes of each goal ran besides
}

// Page is everything that was measured.
type Page struct {
	Conditions
	Shapes   []shape.Shape
	Mixes    []shape.Shape  // that ran with the smallest number of nodes; the others are compared with the first
	Results  []trial.Result // in the order in which they ran
	Profiles []trial.Profile
}

// InTight says whether a shape is in the trials with pods that fit nowhere, and in those whose nodes are nearly full: it has
// a claim for the former, and is no variant.
func InTight(s shape.Shape) bool { return s.TooMuch != nil && !s.Variant }

// InFilled says whether a shape also runs while three quarters of each node are taken.
func InFilled(s shape.Shape) bool { return !s.Variant && s.Name != shape.Beside }

// InForeign says whether a shape also runs while another driver has claims in the cluster.
func InForeign(s shape.Shape) bool {
	return s.Name == shape.Ours || s.Name == shape.Split || s.Name == shape.GPU
}

// InProfiles says whether the scheduler is profiled with a shape: it has claims, and is no
// variant.
func InProfiles(s shape.Shape) bool { return s.Claim != nil && !s.Variant }

// OneSize returns the number of nodes with which shapes and loads run that have one size only. The sizes are ascending.
func OneSize(sizes []int) int {
	if slices.Contains(sizes, reasonNodes) {
		return reasonNodes
	}
	return sizes[len(sizes)-1]
}

// Runs says whether a shape runs with a number of nodes, of these sizes.
func Runs(s shape.Shape, nodes int, sizes []int) bool { return !s.OneSize || nodes == OneSize(sizes) }

// Line is a result in one line.
func Line(r trial.Result) string {
	text := fmt.Sprintf("%s pods/s, latency %s (p99 %s), scheduler %s CPU per pod, PreFilter %s, API server %s, etcd %s",
		plot.Number(r.PodsPerSecond), duration(r.P50), duration(r.P99), duration(r.SchedulerCPU), duration(r.PreFilter), mib(r.APIServerBytes), mib(r.EtcdBytes))
	if r.Load.TooMuch > 0 {
		text += fmt.Sprintf(", %d pods fit nowhere", r.Load.TooMuch)
	}
	if r.Load.Fill > 0 {
		text += fmt.Sprintf(", %d NUMA nodes were taken", r.Load.Fill)
	}
	if r.Load.Foreign > 0 {
		text += fmt.Sprintf(", %d claims of another driver", r.Load.Foreign)
	}
	if r.Timeouts > 0 {
		text += fmt.Sprintf(", %d timed out", r.Timeouts)
	}
	return text
}

func duration(d time.Duration) string { return plot.Duration(float64(d)) }

func mib(bytes int64) string { return plot.Number(float64(bytes)/(1<<20)) + " MiB" }

// Write writes the page and its figures to the folder.
func (p Page) Write(folder string) error {
	text, figures, err := p.render()
	if err != nil {
		return err
	}
	return write(folder, scalePage, text, figures)
}

// The figures.
const (
	ratiosFigure = "scale-ratios.svg"
	growthFigure = "scale-growth.svg"
)

// render returns the page, and its figures by file name. It is an error if a shape did not
// run as often as the others.
func (p Page) render() (text string, figures map[string]string, err error) {
	if err := p.complete(); err != nil {
		return "", nil, err
	}
	ratios := p.ratios()
	figures = map[string]string{ratiosFigure: bars(ratios).SVG()}
	sections := []string{introduction + p.goalMethod(), p.machine() + relation(growthPage), p.goals(ratios), ratioSection(ratios)}
	if len(p.sizes()) > 1 {
		sections = append(sections, growthSection)
		figures[growthFigure] = p.growth().SVG()
	}
	for _, nodes := range p.sizes() {
		sections = append(sections, p.measured(nodes))
	}
	sections = append(sections, p.profiled(), p.tooMuch(), p.taken(), p.fragmented(), p.foreign(), p.beside(), p.mixed(), p.attributes(), p.shapes(), notes)
	sections = slices.DeleteFunc(sections, func(s string) bool { return s == "" })
	return strings.Join(sections, "\n"), figures, nil
}

// complete says whether each shape ran for each pair.
func (p Page) complete() error {
	for _, nodes := range p.sizes() {
		for _, s := range p.Shapes {
			want := p.Pairs
			for _, shapes := range Judged(nodes, p.sizes()) {
				if slices.Contains(shapes, s.Name) {
					want += p.GoalPairs
				}
			}
			if got := len(p.of(nodes, s.Name)); Runs(s, nodes, p.sizes()) && (got != want || got == 0) {
				return fmt.Errorf("%d results of %s with %d nodes, want %d", got, s.Name, nodes, want)
			}
		}
		for _, s := range p.Mixes {
			if got := len(p.of(nodes, s.Name)); nodes == p.sizes()[0] && got != p.Pairs {
				return fmt.Errorf("%d results of %s, want %d", got, s.Name, p.Pairs)
			}
		}
	}
	if len(p.Results) == 0 {
		return fmt.Errorf("no results")
	}
	return nil
}

// sizes are the numbers of nodes, ascending.
func (p Page) sizes() (list []int) {
	for _, r := range p.Results {
		list = append(list, r.Nodes)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// of returns the results of a shape whose pods all fit, pair by pair.
func (p Page) of(nodes int, name string) []trial.Result { return p.filter(nodes, name, allFit) }

// kind is what pods a trial has.
type kind int

const (
	allFit kind = iota
	tooMuch
	fragmented
	taken
	foreign
)

func kindOf(l trial.Load) kind {
	switch {
	case l.TooMuch > 0:
		return tooMuch
	case l.Left > 0:
		return fragmented
	case l.Fill > 0:
		return taken
	case l.Foreign > 0:
		return foreign
	}
	return allFit
}

func (p Page) filter(nodes int, name string, of kind) (list []trial.Result) {
	for _, r := range p.Results {
		if r.Nodes == nodes && r.Shape == name && kindOf(r.Load) == of {
			list = append(list, r)
		}
	}
	return list
}

// figure is a number of a result.
type figure func(trial.Result) float64

func rate(r trial.Result) float64 { return r.PodsPerSecond }

func cpu(r trial.Result) float64 { return float64(r.SchedulerCPU) }

func preFilter(r trial.Result) float64 { return float64(r.PreFilter) }

func values(results []trial.Result, of figure) (list []float64) {
	for _, r := range results {
		list = append(list, of(r))
	}
	return list
}

func median(results []trial.Result, of figure) float64 {
	return compare.Of(values(results, of)).Median
}

const introduction = `<!-- make scale writes this page. Do not edit it. -->
# Scheduling at scale
This page compares ways to publish the same machine: how fast a cluster places pods whose claims ask for the same CPUs. The
control plane is real: etcd, API server, scheduler and controllers of one version of Kubernetes. The nodes are only
objects, so no pod runs. ` + "`make scale`" + ` measures everything again and writes this page.

The shapes` + method

// method is how the things that its first words name were measured.
const method = ` ran in turn, again and again, on the same cluster. These pairs began with different ones, and every other one ran
backwards, so none always ran after the same one. A ratio is the geometric mean of the pairs, with the range in
which the true ratio is in 95 of 100 cases (Student's t of the logarithms).
`

// goalMethod is "" if nothing ran for the goals alone.
func (c Conditions) goalMethod() string {
	if c.GoalPairs == 0 {
		return ""
	}
	return fmt.Sprintf("\nThe two shapes of each goal ran another %d times, one right after the other. These pairs count, too.\n", c.GoalPairs)
}

func (c Conditions) machine() string {
	return "## Machine\n" + plot.Table([]string{"what", "value"}, append(c.Machine.Rows(),
		[]string{"load averages after the trials", c.LoadAfter},
		[]string{"Kubernetes", c.Kubernetes},
		[]string{"pods of a trial", fmt.Sprint(c.Pods)},
		[]string{"pairs", fmt.Sprint(c.Pairs)},
		[]string{"duration", c.Took.Round(time.Second).String()},
	)) + host.Note
}
