package page

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/profile"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// speeds are the pods per second of the shapes.
var speeds = map[string]float64{shape.Plain: 200, shape.Cheapest: 50, shape.Selected: 50, shape.Ours: 49, shape.Split: 20, shape.PerCPU: 25, shape.GPU: 40, shape.Beside: 30, shape.AttributesName(1): 50}

// filled is a page with results of these sizes. Each pair has another speed of the machine.
func filled(t *testing.T, sizes ...int) Page {
	t.Helper()
	m, err := shape.Machine()
	if err != nil {
		t.Fatal(err)
	}
	p := Page{Conditions: Conditions{Machine: host.Machine{Load: "0.30, 1.20, 3.00"}, Kubernetes: "1.37", Pods: 100, Pairs: 5}}
	if p.Shapes, err = shape.All(m); err != nil {
		t.Fatal(err)
	}
	one, err := shape.WithAttributes(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	p.Shapes = append(p.Shapes, one)
	if p.Mixes, err = shape.Mixes(); err != nil {
		t.Fatal(err)
	}
	for _, nodes := range sizes {
		for pair := range p.Pairs {
			for _, s := range p.Shapes {
				if !Runs(s, nodes, sizes) {
					continue
				}
				speed := speeds[s.Name] * (1 + float64(pair)) / math.Sqrt(float64(nodes))
				r := trial.Result{
					Shape: s.Name, Nodes: nodes, Load: trial.Load{Pods: 100}, PodsPerSecond: speed, P50: time.Second, P99: 2 * time.Second,
					SchedulerCPU: time.Duration(float64(time.Second) / speed), PreFilter: time.Duration(1+pair) * time.Millisecond, APIServerBytes: 500 << 20, EtcdBytes: 100 << 20,
				}
				p.Results = append(p.Results, r)
				if nodes == OneSize(sizes) && InFilled(s) {
					half := r
					half.Load, half.PodsPerSecond, half.SchedulerCPU = trial.Load{Pods: 100, Fill: 3 * nodes}, speed/2, 2*r.SchedulerCPU
					p.Results = append(p.Results, half)
				}
				if nodes == OneSize(sizes) && InForeign(s) {
					slower := r
					slower.Load, slower.PodsPerSecond, slower.SchedulerCPU, slower.PreFilter = trial.Load{Pods: 100, Foreign: 5000}, speed/4, 4*r.SchedulerCPU, 9*r.PreFilter
					p.Results = append(p.Results, slower)
				}
				if nodes == sizes[0] && InTight(s) {
					r.Load = trial.Load{Pods: 20, TooMuch: 2}
					if s.Name == shape.PerCPU {
						r.Timeouts = 1
					}
					p.Results = append(p.Results, r)
				}
				if nodes == sizes[0] && InTight(s) {
					r.Load, r.Timeouts = trial.Load{Pods: 20, Fill: 4*nodes - 5, Left: 2}, 0
					p.Results = append(p.Results, r)
				}
			}
			for i, s := range p.Mixes {
				if nodes == sizes[0] {
					p.Results = append(p.Results, trial.Result{
						Shape: s.Name, Nodes: nodes, Load: trial.Load{Pods: 20}, PodsPerSecond: 40 / float64(i+1), SchedulerCPU: time.Duration(10*(i+1)) * time.Millisecond,
					})
				}
			}
		}
		for _, s := range p.Shapes {
			if InProfiles(s) && !s.OneSize {
				parts := []profile.Part{{Name: profile.Selectors}, {Name: profile.Capacity}, {Name: profile.Garbage, CPU: 200 * time.Millisecond}, {Name: "others", CPU: time.Second}}
				if s.Name != shape.Cheapest {
					parts[0].CPU, parts[1].CPU, parts[2].CPU, parts[3].CPU = 300*time.Millisecond, 150*time.Millisecond, 250*time.Millisecond, 1050*time.Millisecond
				}
				p.Profiles = append(p.Profiles, trial.Profile{Shape: s.Name, Nodes: nodes, Pods: 100, Parts: parts})
			}
		}
	}
	return p
}

func rendered(t *testing.T, p Page) (string, map[string]string) {
	t.Helper()
	text, figures, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	for _, nonsense := range []string{"NaN", "Inf", "%!", "\n\n\n"} {
		if strings.Contains(text, nonsense) {
			t.Errorf("the page has %q", nonsense)
		}
		for name, svg := range figures {
			if strings.Contains(svg, nonsense) {
				t.Errorf("%s has %q", name, nonsense)
			}
		}
	}
	return text, figures
}

func TestGoalsAreOfTheirSizes(t *testing.T) {
	text, figures := rendered(t, filled(t, 500, 5000))
	for _, line := range []string{
		"| scheduler's CPU time, 500 nodes, CPUs and memory apart / this driver | ≥ 1.5 | 2.45 (2.45 to 2.45) | **met** |",
		"| 500 | cheapest claim | 0.98 (0.98 to 0.98) | 0.98 (0.98 to 0.98) |",
		"| pods for which the scheduler runs out of time, of those that fit nowhere | 0 | 0; one device per CPU: 5 | **met** |",
		"| one device per CPU | 3.35 | 2 s | 298 ms | 5 of 10 |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, "5000 nodes, CPUs and memory apart / this driver | ≥") {
		t.Error("5000 nodes have a goal, which is of 500 and 2000")
	}
	if len(figures) != 2 || !strings.Contains(text, ratiosFigure) || !strings.Contains(text, growthFigure) {
		t.Errorf("%d figures", len(figures))
	}
}

func TestPageOfGrowth(t *testing.T) {
	p := filled(t, SmallGrowth, LargeGrowth)
	p.Shapes = slices.DeleteFunc(p.Shapes, func(s shape.Shape) bool { return !InGrowth(s) })
	p.Mixes = nil
	text, err := p.renderGrowth()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Pods per second with 5000 nodes / those with 500 nodes", "| cheapest claim | 1 (1 to 1) |\n", "| cheapest claim, selected | 1 (1 to 1) |\n",
		"## 500 nodes\n", "## 5000 nodes\n", "| this driver | ", "230 nodes where it fits in a cluster of 500 nodes, and for 500 in one of 5000:\n2.17 times as many",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, shape.Split) {
		t.Errorf("the page is\n%s", text)
	}
	p.Results = slices.DeleteFunc(p.Results, func(r trial.Result) bool { return r.Shape == shape.Ours })
	if _, err := p.renderGrowth(); err == nil {
		t.Error("no error without the results of a shape")
	}
}

func TestBusyMachineHasNoVerdicts(t *testing.T) {
	p := filled(t, SmallGrowth, LargeGrowth)
	for load, verdicts := range map[string]bool{"1.00, 4.00, 5.00": true, "1.01, 0.40, 0.30": false} {
		p.Machine.Load = load
		text, _ := rendered(t, p)
		if got := strings.Contains(text, "| verdict |"); got != verdicts || strings.Contains(text, "| **") != verdicts || strings.Contains(text, "judges no goal") == verdicts {
			t.Errorf("load %s: verdicts: %t, want %t:\n%s", load, got, verdicts, text)
		}
		if want := "| scheduler's CPU time, 500 nodes, CPUs and memory apart / this driver | ≥ 1.5 | 2.45 (2.45 to 2.45) |"; !strings.Contains(text, want) {
			t.Errorf("load %s: the page lacks %q", load, want)
		}
	}
}

func TestPagesSayWhetherOneMachineMeasuredBoth(t *testing.T) {
	folder := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	p := filled(t, SmallGrowth, LargeGrowth)
	p.Machine.Processor = "one"
	if err := p.Write(folder); err != nil {
		t.Fatal(err)
	}
	if text := read(scalePage); !strings.Contains(text, "\n[Scheduling on 5,000 nodes](scale-growth.md) was not measured.\n") {
		t.Errorf("the only page is\n%s", text)
	}
	for processor, want := range map[string]string{
		"other": "was measured under other conditions (processor): compare no times across the two pages.",
		"one":   "was measured on this machine, too.",
	} {
		p.Machine.Processor = processor
		if err := p.WriteGrowth(folder); err != nil {
			t.Fatal(err)
		}
		for name, other := range map[string]string{scalePage: growthPage, growthPage: scalePage} {
			if text := read(name); strings.Count(text, "\n"+link(other)+want+"\n") != 1 {
				t.Errorf("processor %s, %s lacks %q:\n%s", processor, name, want, text)
			}
		}
	}
}

func TestPreFilterHasAColumn(t *testing.T) {
	p := filled(t, 100)
	text, _ := rendered(t, p)
	if want := "| this driver | 14.7 | 1 s | 2 s | 68 ms | 3 ms | 500 MiB | 100 MiB | "; !strings.Contains(text, want) {
		t.Errorf("the page lacks %q:\n%s", want, text)
	}
}

func TestFilledNodesAreBesideEmptyOnes(t *testing.T) {
	p := filled(t, 100, 500)
	text, _ := rendered(t, p)
	for _, line := range []string{
		"NUMA nodes of each of the 500 nodes",
		"| CPUs and memory apart | 2.68 | 1.34 | 0.5 (0.5 to 0.5) | 373 ms | 745 ms | 3 ms | 2.45 (2.45 to 2.45) |",
		"| plain pods | 26.8 | 13.4 | 0.5 (0.5 to 0.5) | 37.3 ms | 74.5 ms | 3 ms | 0.245 (0.245 to 0.245) |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	p.Results = slices.DeleteFunc(p.Results, func(r trial.Result) bool { return r.Load.Fill > 0 || r.Load.Foreign > 0 })
	if text, _ := rendered(t, p); strings.Contains(text, "## Nodes") || strings.Contains(text, "## Claims of another driver") {
		t.Errorf("the page has trials that did not run:\n%s", text)
	}
}

func TestClaimsOfAnotherDriverAreBesideNone(t *testing.T) {
	text, _ := rendered(t, filled(t, 100, 500))
	for _, line := range []string{
		"5000 claims hold shares of the devices of another driver, on nodes that are not among the 500 nodes",
		"| this driver | 1.64 | 0.25 (0.25 to 0.25) | 608 ms | 4 (4 to 4) | 27 ms | 3 ms |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
}

func TestGPUsAreOfOneSize(t *testing.T) {
	text, _ := rendered(t, filled(t, 100, 500, 2000))
	for _, line := range []string{
		"| pods/s, 500 nodes, a GPU beside this driver / alone | ≥ 1/1.5 | 0.75 (0.75 to 0.75) | **met** |",
		"| a GPU beside this driver | 4.02 | 0.75 (0.75 to 0.75) | 248 ms | 1.33 (1.33 to 1.33) |",
		"| 500 | a GPU | 1.2",
	} {
		if strings.Count(text, line) != 1 {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	for _, line := range []string{"| 100 | a GPU |", "| 2000 | a GPU |"} {
		if strings.Contains(text, line) {
			t.Errorf("the page has %q", line)
		}
	}
	for nodes, sizes := range map[int][]int{500: {100, 500, 2000}, 20: {10, 20}} {
		if got := OneSize(sizes); got != nodes {
			t.Errorf("%v: %d, want %d", sizes, got, nodes)
		}
	}
}

func TestOneSizeHasNoGrowth(t *testing.T) {
	text, figures := rendered(t, filled(t, 20))
	if len(figures) != 1 || strings.Contains(text, growthFigure) || strings.Contains(text, "## Growth") {
		t.Errorf("%d figures, and the page is\n%s", len(figures), text)
	}
}

func TestSmallClusterWithoutPodsThatFitNowhereHasNoGoals(t *testing.T) {
	p := filled(t, 20)
	p.Results = slices.DeleteFunc(p.Results, func(r trial.Result) bool { return r.Load.TooMuch > 0 })
	p.Shapes = slices.DeleteFunc(p.Shapes, func(s shape.Shape) bool { return s.OneSize })
	p.Results = slices.DeleteFunc(p.Results, func(r trial.Result) bool { return r.Shape == shape.GPU || r.Shape == shape.Beside })
	text, _ := rendered(t, p)
	if !strings.Contains(text, "None was measured") || strings.Contains(text, "## Pods that fit nowhere") {
		t.Errorf("the page is\n%s", text)
	}
}

func TestCostOfAttributesIsTheSlope(t *testing.T) {
	p := filled(t, 100)
	text, _ := rendered(t, p)
	ours := p.Shapes[3].AttributeCount()
	for _, line := range []string{
		fmt.Sprintf("%.1f %% of all", 100*(1-49.0/50)/float64(ours-1)),
		"| 1 | 15 | 1.02 (1.02 to 1.02) | ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	p.Shapes = slices.DeleteFunc(p.Shapes, func(s shape.Shape) bool { return s.Variant })
	if text, _ := rendered(t, p); strings.Contains(text, "What attributes cost") {
		t.Error("the page has a cost of attributes that was not measured")
	}
}

func TestReasonIsWhatTheCheapestClaimDoesNotCost(t *testing.T) {
	text, _ := rendered(t, filled(t, 500))
	want := "takes 5.50 ms more of the scheduler's CPU time than one with the cheapest claim: 3.00 ms\nfor selectors, 1.50 ms for what claims take of capacities, 0.50 ms for garbage collection, and 0.50 ms for the rest."
	if !strings.Contains(text, want) || !strings.Contains(text, "| all | 12.00 | 17.50 | 17.50 | 17.50 | 17.50 |") {
		t.Errorf("the page lacks %q:\n%s", want, text)
	}
	p := filled(t, 500)
	p.Profiles = nil
	if text, _ := rendered(t, p); strings.Contains(text, "for selectors") || strings.Contains(text, "time goes to") {
		t.Errorf("the page has a profile that was not measured:\n%s", text)
	}
}

func TestNearlyFullNodesAndLargerClaimsAreOfTheSmallestSize(t *testing.T) {
	p := filled(t, 100, 500)
	text, _ := rendered(t, p)
	for _, line := range []string{
		"fits there: 395 of them. Each of the 100 nodes", "but only 5 NUMA nodes have them. The trial has 20 pods.",
		"| CPUs and memory apart | 6 | 2 s | 167 ms | 2.45 (2.45 to 2.45) |",
		"| and a GPU and a NIC | 10 | 0.25 (0.25 to 0.25) | 40 ms | 4 (4 to 4) |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the page lacks %q:\n%s", line, text)
		}
	}
	p.Results = slices.DeleteFunc(p.Results, func(r trial.Result) bool { return r.Shape == shape.MixCache })
	if _, _, err := p.render(); err == nil || !strings.Contains(err.Error(), "0 results of and cache ways, want 5") {
		t.Errorf("without a mix: %v", err)
	}
}

// The shapes of a goal run more often than the others, and all of their pairs count.
func TestGoalsHavePairsOfTheirOwn(t *testing.T) {
	p := filled(t, 100, 500, 2000)
	p.GoalPairs = 1
	if _, _, err := p.render(); err == nil {
		t.Error("no error, though the shapes of goals have no pairs of their own")
	}
	for _, nodes := range p.sizes() {
		for _, shapes := range Judged(nodes, p.sizes()) {
			for i, name := range shapes {
				p.Results = append(p.Results, trial.Result{Shape: name, Nodes: nodes, Load: trial.Load{Pods: 100}, PodsPerSecond: 1, SchedulerCPU: time.Duration(1 + i)})
			}
		}
	}
	text, _, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	if want := "The two shapes of each goal ran another 1 times"; !strings.Contains(text, want) {
		t.Errorf("no %q in:\n%s", want, text)
	}
	for name, want := range map[string]float64{shape.Split: math.Pow(math.Pow(49.0/20, 5)*2, 1.0/6), shape.Cheapest: 49.0 / 50} {
		i := slices.IndexFunc(p.ratios(), func(r ratio) bool { return r.nodes == 2000 && r.other == name })
		if got := p.ratios()[i].cpu.Ratio; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("%s: %g, want %g", name, got, want)
		}
	}
}

func TestMedianOfTwoPairsIsBetweenThem(t *testing.T) {
	if got := median([]trial.Result{{PodsPerSecond: 10}, {PodsPerSecond: 20}}, rate); got != 15 {
		t.Errorf("%g, want 15", got)
	}
}

func TestPageNeedsEveryPair(t *testing.T) {
	p := filled(t, 100)
	p.Results = p.Results[1:]
	if _, _, err := p.render(); err == nil || !strings.Contains(err.Error(), "4 results of plain pods with 100 nodes, want 5") {
		t.Errorf("with a missing result: %v", err)
	}
	if _, _, err := (Page{}).render(); err == nil {
		t.Error("an empty page was written")
	}
}

func TestTimeoutsOfNobodyShowNothing(t *testing.T) {
	for _, row := range []struct {
		ours, perCPU int
		want         compare.Verdict
	}{{0, 3, compare.Met}, {1, 3, compare.Missed}, {0, 0, compare.NotDecided}} {
		if got := timeoutVerdict(row.ours, row.perCPU); got != row.want {
			t.Errorf("%d of ours and %d of one device per CPU: %s, want %s", row.ours, row.perCPU, got, row.want)
		}
	}
}

func TestLineIsOneLine(t *testing.T) {
	r := trial.Result{PodsPerSecond: 42, P50: time.Second, P99: 2 * time.Second, SchedulerCPU: 20 * time.Millisecond, PreFilter: 3 * time.Millisecond, Load: trial.Load{TooMuch: 2}, Timeouts: 1}
	if got, want := Line(r), "42 pods/s, latency 1 s (p99 2 s), scheduler 20 ms CPU per pod, PreFilter 3 ms, API server 0 MiB, etcd 0 MiB, 2 pods fit nowhere, 1 timed out"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
