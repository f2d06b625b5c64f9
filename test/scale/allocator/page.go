package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// Page is everything that was measured.
type Page struct {
	Machine   host.Machine
	LoadAfter string // load averages when the benchmarks ended
	Took      time.Duration
	Rounds    int
	Versions  []Version
	Cases     []Case
	Values    gather.Result
}

// Version is one of Kubernetes.
type Version struct {
	Name   string // 1.37
	Module string // version of k8s.io/dynamic-resource-allocation
	Go     string // that it was compiled with
}

// table shows cases. The first one is what the others are divided by.
type table struct {
	title, text string
	cases       []string
}

var tables = []table{
	{
		"Shape", "The node is empty, and no other driver has devices on it. The claims of the shapes are those of [scale.md](scale.md#shapes),\n" +
			"and the last three its [larger ones](scale.md#larger-claims), on a node with caches, 8 GPUs and 8 NICs of this driver.",
		[]string{gpu, ours, "groups-1", "groups-4", "cheapest", "cheapest-selected", "split", "per-cpu", "second-alternative", "cache-ways", "gpu-and-nic"},
	},
	{
		"Fill", "Three of the four NUMA nodes have no CPUs left, or 6 of the 8 GPUs are allocated, the first ones. This driver publishes full\n" +
			"zones last.",
		[]string{gpu, gpuFilled, "gpu-full", ours, oursFilled, "ours-75-first", "ours-full", "split", "split-75", "per-cpu", "per-cpu-75"},
	},
	{
		"Shares elsewhere", "Claims hold shares of zones of this driver on other nodes. The node is empty. Kubernetes 1.37 looks at all shares of the\n" +
			"cluster if a device that can be shared is free ([upstream.md](upstream.md#the-scan-of-all-shares)).",
		[]string{ours, oursFew, oursMany},
	},
	{
		"Shares elsewhere, for a GPU's claim", "The same shares, and a claim of a driver whose devices are exclusive.",
		[]string{gpu, "gpu-5000", "gpu-50000"},
	},
	{
		"What other drivers on the node cost a GPU's claim", "The allocator tries the drivers in the order of their names, and evaluates the selectors of the class for each device.\n" +
			"So a GPU driver whose name sorts after `dra.numa` pays for the zones before its own devices.",
		[]string{
			gpu, besideZones, "gpu-before-zones", besideFunctions, "gpu-before-functions", besidePerCPU, "gpu-before-per-cpu",
		},
	},
	{
		"What other drivers on the node cost a claim of this driver", "The same the other way round.",
		[]string{ours, "ours-before-gpus", "ours-after-gpus", "ours-before-per-cpu"},
	},
}

// render returns the page.
func (p Page) render() (string, error) {
	sections := []string{introduction, p.machine()}
	goals, err := p.goals()
	if err != nil {
		return "", err
	}
	sections = append(sections, goals)
	for _, t := range tables {
		text, err := p.table(t)
		if err != nil {
			return "", err
		}
		sections = append(sections, text)
	}
	return strings.Join(append(sections, notes), "\n"), nil
}

const introduction = `<!-- make bench-allocator writes this page. Do not edit it. -->
# What a claim costs the allocator
For each node on which a pod with a claim may fit, the scheduler calls Kubernetes' allocator. This page shows what one call
costs on one node, with one factor changed at a time, for claims of this driver and of others. It also shows what the devices of
this driver cost the claims of others. ` + "`make bench-allocator`" + ` measures everything again and writes this page. It takes less
than five minutes.

The allocator is the real one, from the module ` + "`k8s.io/dynamic-resource-allocation`" + ` of each version. Scheduler and API server
are not there: [scale.md](scale.md) measures all of them together.
`

func (p Page) machine() string {
	rows := append(p.Machine.Rows(),
		[]string{"load averages after the benchmarks", p.LoadAfter},
		[]string{"rounds", fmt.Sprintf("%d, with %d calls of the allocator for each case", p.Rounds, calls)},
		[]string{"duration", p.Took.Round(time.Second).String()})
	for _, v := range p.Versions {
		rows = append(rows, []string{"Kubernetes " + v.Name, fmt.Sprintf("module %s, compiled with Go %s", v.Module, v.Go)})
	}
	return "## Machine\n" + plot.Table([]string{"what", "value"}, rows) + host.Note
}

const judged = "A goal is met if the middle half of the rounds meets it, and missed if nothing of that half does. In between it is not decided.\n\n"

// goals has no verdicts if the machine was busy.
func (p Page) goals() (string, error) {
	busy := host.Busy(p.Machine.Load)
	text, header := "## Goals\n"+judged, []string{"Kubernetes", "what", "goal", "measured", "verdict"}
	if busy {
		text, header = "## Goals\n"+host.Unjudged("make bench-allocator")+"\n", header[:4]
	}
	var rows [][]string
	for _, g := range goals() {
		ratio, err := p.ratio(g.version, g.a, g.b)
		if err != nil {
			return "", err
		}
		row := []string{g.version, g.what, g.limit(), spread(ratio, plot.Number)}
		if !busy {
			row = append(row, "**"+string(g.judge(ratio))+"**")
		}
		rows = append(rows, row)
	}
	return text + plot.Table(header, rows), nil
}

// key is the name of a case in the values.
func key(version, name string) string { return version + "/Case/" + name }

func (p Page) values(version, name, unit string) ([]float64, error) {
	values := p.Values.Values(key(version, name), unit)
	if len(values) == 0 {
		return nil, fmt.Errorf("case %s has no %s with Kubernetes %s", name, unit, version)
	}
	return values, nil
}

// ratio is the time of case a / that of case b, in the same rounds.
func (p Page) ratio(version, a, b string) (compare.Spread, error) {
	times, err := p.values(version, a, measure.CPUUnit)
	if err != nil {
		return compare.Spread{}, err
	}
	others, err := p.values(version, b, measure.CPUUnit)
	if err != nil {
		return compare.Spread{}, err
	}
	if len(times) != len(others) {
		return compare.Spread{}, fmt.Errorf("%d values of case %s, %d of %s", len(times), a, len(others), b)
	}
	return compare.MiddleRatio(times, others), nil
}

// longest is the longest time that is shown. Longer ones say more about the machine than the
// factor does.
const longest = 40 * time.Microsecond

func (p Page) table(t table) (string, error) {
	header := []string{"claim"}
	for _, v := range p.Versions {
		header = append(header, v.Name+": factor", "µs", "allocations")
	}
	var rows [][]string
	for _, name := range t.cases {
		i := slices.IndexFunc(p.Cases, func(c Case) bool { return c.Name == name })
		if i < 0 {
			return "", fmt.Errorf("there is no case %s", name)
		}
		row := []string{p.Cases[i].Title}
		for _, v := range p.Versions {
			cells, err := p.cells(v.Name, name, t.cases[0])
			if err != nil {
				return "", err
			}
			row = append(row, cells...)
		}
		rows = append(rows, row)
	}
	return "## " + t.title + "\n" + t.text + "\n\n" + plot.Table(header, rows), nil
}

// cells are factor, time and allocations of the case with one version.
func (p Page) cells(version, name, baseline string) ([]string, error) {
	ratio, err := p.ratio(version, name, baseline)
	if err != nil {
		return nil, err
	}
	times, err := p.values(version, name, measure.CPUUnit)
	if err != nil {
		return nil, err
	}
	allocations, err := p.values(version, name, "allocs/op")
	if err != nil {
		return nil, err
	}
	micros := "–"
	if middle := compare.Middle(times); middle.Median < float64(longest) {
		micros = spread(middle, func(ns float64) string { return fmt.Sprintf("%.1f", ns/1000) })
	}
	return []string{spread(ratio, plot.Number), micros, fmt.Sprintf("%.0f", compare.Middle(allocations).Median)}, nil
}

// spread returns the median and the quartiles.
func spread(s compare.Spread, text func(float64) string) string {
	if s.Low == s.High {
		return text(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", text(s.Median), text(s.Low), text(s.High))
}

const notes = `## What is measured
- **A factor** is the time of a row divided by that of the first row of its table in the same round. It is the median of the
  rounds, with the quartiles. Times are shown up to 40 µs.
- **Times** are CPU time of the process, user and system together: the kernel tells the two apart only by what runs at its
  ticks, which is too coarse for calls of microseconds. The process has one thread for Go code. It collects no garbage
  meanwhile. In a scheduler, that costs time in addition, which grows with the memory that is allocated.
- **The versions** run in turn: in each round, all cases with the one, in a random order, then all with the other. They are
  compiled with the Go of the table above, so columns of different versions differ in Go, too.
- **The node** has 64 CPUs and 128 GiB in 4 NUMA nodes. Package ` + "`numa/fake`" + ` generates it, and the driver's own code makes the
  slices. A claim asks for 4 CPUs and 1Gi.
- **A GPU** is what GPU drivers publish: 8 exclusive devices with 22 attributes and a capacity. The selector of the class is
  ` + "`device.driver == … && device.attributes[…].type == …`" + `.
- **The first calls** of each case, which compile the selectors, do not count.
`
