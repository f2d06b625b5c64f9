package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// OrderPage is everything that was measured of zoneOrder.
type OrderPage struct {
	Conditions
	Placed []trial.Ordered // in the order in which they ran
	Woken  []trial.Woken   // likewise
}

// Everies is after how many claims slices are written. The first is zoneOrder: static, with no write.
var Everies = []int{0, 1, 4, 16, 64}

// OrderCPUs is what each pod asks for.
const OrderCPUs = 2

const (
	orderPage   = "scale-order.md"
	orderFigure = "scale-order.svg"
)

// Write writes the page and its figure to the folder.
func (p OrderPage) Write(folder string) error {
	text, figure, err := p.render()
	if err != nil {
		return err
	}
	return plot.WritePage(folder, orderPage, text, map[string]string{orderFigure: figure})
}

func (p OrderPage) render() (text, figure string, err error) {
	if err := p.complete(); err != nil {
		return "", "", err
	}
	sections := []string{orderIntroduction, p.machine(), p.goals(), orderFigureText}
	for _, nodes := range p.sizes() {
		sections = append(sections, p.placed(nodes), p.woken(nodes))
	}
	return strings.Join(append(sections, orderNotes), "\n"), p.bars().SVG(), nil
}

const orderIntroduction = `<!-- make scale-order writes this page. Do not edit it. -->
# Scheduling with zoneOrder: spread
This page shows what [` + "`zoneOrder: spread`" + `](zones.md#which-zone-a-claim-gets) costs the scheduler, and how even it makes the zones of
a node. A node with this order writes its ResourceSlice again when another zone comes first, and each write makes the scheduler
try again all pods that wait for devices. The control plane is that of [Scheduling at scale](scale.md#what-is-measured).
` + "`make scale-order`" + ` measures everything again and writes this page.

The orders` + method

const orderFigureText = "## Pods per second\n![Pods per second with zoneOrder: spread divided by those with static](" + orderFigure + ")\n"

// complete says whether everything ran for each pair.
func (p OrderPage) complete() error {
	for _, nodes := range p.sizes() {
		for _, every := range Everies {
			if got := len(p.of(nodes, every)); got != p.Pairs {
				return fmt.Errorf("%d results of %q with %d nodes, want %d", got, OrderName(every), nodes, p.Pairs)
			}
		}
		for _, write := range []bool{false, true} {
			if got := len(p.wokenBy(nodes, write)); got != p.Pairs {
				return fmt.Errorf("%d results of %q with %d nodes, want %d", got, writeName(write), nodes, p.Pairs)
			}
		}
	}
	if len(p.Placed) == 0 {
		return fmt.Errorf("no results")
	}
	return nil
}

// sizes are the numbers of nodes, ascending.
func (p OrderPage) sizes() (list []int) {
	for _, o := range p.Placed {
		list = append(list, o.Nodes)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// of returns the results of an order, pair by pair.
func (p OrderPage) of(nodes, every int) (list []trial.Ordered) {
	for _, o := range p.Placed {
		if o.Nodes == nodes && o.Every == every {
			list = append(list, o)
		}
	}
	return list
}

func (p OrderPage) wokenBy(nodes int, write bool) (list []trial.Woken) {
	for _, w := range p.Woken {
		if w.Nodes == nodes && w.Write == write {
			list = append(list, w)
		}
	}
	return list
}

// OrderName is what the page calls an order whose slices are written after every so many claims.
func OrderName(every int) string {
	switch every {
	case 0:
		return "static"
	case 1:
		return "spread, after each claim"
	}
	return fmt.Sprintf("spread, after every %d claims", every)
}

func writeName(write bool) string {
	if write {
		return "one write of one slice"
	}
	return "no write"
}

// numbers are those of results, pair by pair.
func numbers[T any](results []T, of func(T) float64) (list []float64) {
	for _, r := range results {
		list = append(list, of(r))
	}
	return list
}

func orderRate(o trial.Ordered) float64 { return o.PodsPerSecond }

func orderCPU(o trial.Ordered) float64 { return float64(o.SchedulerCPU) }

func attempts(w trial.Woken) float64 { return float64(w.Attempts) }

// The goals: how much slower pods may be placed with a write after each claim, and that each Pending
// pod is tried once at most.
const orderGoal = 0.9

func (p OrderPage) goals() string {
	var rows [][]string
	goal := func(what, limit, measured string, verdict compare.Verdict) {
		rows = append(rows, []string{what, limit, measured, "**" + string(verdict) + "**"})
	}
	for _, nodes := range p.sizes() {
		spread, woken := p.of(nodes, 1), p.wokenBy(nodes, true)
		r := stats.Ratio(numbers(spread, orderRate), numbers(p.of(nodes, 0), orderRate))
		goal(fmt.Sprintf("pods/s, %d nodes, %s / static", nodes, OrderName(1)), "≥ "+plot.Number(orderGoal), interval(r), r.AtLeast(orderGoal))
		one := compare.Of(numbers(spread, func(o trial.Ordered) float64 { return float64(o.OneZone) }))
		goal(fmt.Sprintf("nodes whose claims are all on one zone, of those with several, %d nodes, %s", nodes, OrderName(1)), "0", ranged(one, plot.Number), one.AtMost(0))
		tried := compare.Of(numbers(woken, attempts))
		limit := float64(woken[0].Pending)
		goal(fmt.Sprintf("attempts in vain after one write, %d nodes", nodes), "≤ "+plot.Number(limit), ranged(tried, plot.Number), tried.AtMost(limit))
	}
	return p.goalSection("make scale-order", rows)
}

// ranged is the median of all pairs, with the lowest and the highest.
func ranged(s compare.Spread, format func(float64) string) string {
	return fmt.Sprintf("%s (%s to %s)", format(s.Median), format(s.Low), format(s.High))
}

func (p OrderPage) placed(nodes int) string {
	static := p.of(nodes, 0)
	var rows [][]string
	for _, every := range Everies {
		results := p.of(nodes, every)
		of := func(f func(trial.Ordered) float64) float64 { return compare.Of(numbers(results, f)).Median }
		ratio := func(f func(trial.Ordered) float64) string {
			return interval(stats.Ratio(numbers(results, f), numbers(static, f)))
		}
		rows = append(rows, []string{
			OrderName(every), plot.Number(of(orderRate)), ratio(orderRate), plot.Duration(of(orderCPU)), ratio(orderCPU),
			plot.Number(of(func(o trial.Ordered) float64 { return float64(o.Writes) })),
			plot.Number(of(func(o trial.Ordered) float64 { return float64(o.Several) })),
			plot.Number(of(func(o trial.Ordered) float64 { return 100 * float64(o.OneZone) / float64(max(o.Several, 1)) })) + " %",
			ranged(compare.Of(numbers(results, func(o trial.Ordered) float64 { return o.Difference })), plot.Number),
		})
	}
	return fmt.Sprintf("## Placing pods on %d nodes\nMedians of the pairs. Each trial has %d pods with a claim of %d CPUs each. The last column is how many more CPUs claims hold of the\n"+
		"fullest zone of a node than of its emptiest one: the mean of the nodes with claims, with the lowest and the highest of the pairs.\n\n", nodes, p.Pods, OrderCPUs) +
		plot.Table([]string{
			"order, and when slices are written", "pods/s", "/ static", "scheduler's CPU time per pod", "/ static", "writes",
			"nodes with several claims", "of them, all on one zone", "CPUs between the zones",
		}, rows)
}

func (p OrderPage) woken(nodes int) string {
	var rows [][]string
	for _, write := range []bool{false, true} {
		results := p.wokenBy(nodes, write)
		rows = append(rows, []string{
			writeName(write), ranged(compare.Of(numbers(results, attempts)), plot.Number),
			ranged(compare.Of(numbers(results, func(w trial.Woken) float64 { return float64(w.SchedulerCPU) })), plot.Duration),
			ranged(compare.Of(numbers(results, func(w trial.Woken) float64 { return float64(w.Wait) })), plot.Duration),
		})
	}
	var more, each []float64
	with, without := p.wokenBy(nodes, true), p.wokenBy(nodes, false)
	for i := range with {
		cpu := float64(with[i].SchedulerCPU - without[i].SchedulerCPU)
		more, each = append(more, cpu), append(each, cpu/float64(max(with[i].Attempts, 1)))
	}
	return fmt.Sprintf("## Waking Pending pods, %d nodes\n%d pods are Pending, because no zone is large enough for their claims. Then a pod without a claim is created, with and without a\n"+
		"write of one slice right before. Medians of the pairs, with the lowest and the highest. One write takes the scheduler %s more of\n"+
		"CPU time (median), %s for each attempt in vain.\n\n",
		nodes, with[0].Pending, signed(compare.Of(more).Median), signed(compare.Of(each).Median)) +
		plot.Table([]string{"before the pod", "attempts in vain", "scheduler's CPU time", "time until the pod has a node"}, rows)
}

func (p OrderPage) bars() plot.Bars {
	f := plot.Bars{Title: "Pods per second with zoneOrder: spread / static", Note: "more is better; the orange mark is the goal"}
	for _, nodes := range p.sizes() {
		for _, every := range Everies[1:] {
			r := stats.Ratio(numbers(p.of(nodes, every), orderRate), numbers(p.of(nodes, 0), orderRate))
			bar := plot.Bar{Name: fmt.Sprintf("%d nodes, %s", nodes, OrderName(every)), Median: r.Ratio, Low: r.Low, High: r.High}
			if every == 1 {
				bar.Goal = orderGoal
			}
			f.Bars = append(f.Bars, bar)
		}
	}
	return f
}

var orderNotes = fmt.Sprintf(`## What is measured
- **Pods** ask for %d CPUs and %s in their requests, and the same in a claim that the controllers make from a template. The machine
  of every node has 64 CPUs in 4 NUMA nodes. All pods are created at once. That is hardest for an order, because the scheduler
  places further pods before it has written which zone a claim got. How far it is ahead differs from pair to pair, and so does how
  even the zones are.
- **spread:** after so many claims have devices, all nodes whose zones now begin with another one write their slices at once. Nodes
  do not wait for each other, and each has one write under way at most. The driver's own code puts the zones in order. A real node
  writes later, when the kubelet has prepared the claim, and less often: four times at once, and then at most every 15 seconds.
- **Attempts in vain** are the scheduler's own count of attempts with the result "unschedulable". CPU time is counted until no pod
  is left to try. Before each measurement, nothing happens for 10 seconds, so no Pending pod is held back by its backoff.
- **The pod without a claim** has the priority of the others. The scheduler tries pods of one priority in the order in which they
  were last put into its queue, so this pod waits behind those that the write wakes.
`, OrderCPUs, shape.PodMemory)
