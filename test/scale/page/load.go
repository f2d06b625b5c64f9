package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/plot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/fleet"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
)

// LoadPage is everything that was measured of a fleet of daemons.
type LoadPage struct {
	Machine    host.Machine
	LoadAfter  string // load averages at the end
	Took       time.Duration
	Kubernetes string // version
	Nodes      int
	Claims     int // of each node
	Settings   fleet.Settings
	Phases     []fleet.Phase
	Starts     []fleet.Pair
}

const loadFigure = "api-load.svg"

// Write writes the page and its figure to the folder.
func (p LoadPage) Write(folder string) error {
	return plot.WritePage(folder, "api-load.md", p.text(), map[string]string{loadFigure: p.figure().SVG()})
}

func (p LoadPage) text() string {
	return strings.Join([]string{loadIntroduction, p.machine(), p.goals(), p.phases(), p.each(), p.back(), p.flowControl(), p.requests(), p.notes()}, "\n")
}

const loadIntroduction = `<!-- make api-load writes this page. Do not edit it. -->
# Load on the API server
This page shows what the daemons of many nodes ask of the API server, and how long another user waits meanwhile. API
server, etcd, scheduler and controllers are real. So are the parts of each daemon that talk to the API server and to the
kubelet. The nodes are only objects, and no container runs. ` + "`make api-load`" + ` measures everything again and writes this page.
`

func (p LoadPage) machine() string {
	return "## Machine\n" + plot.Table([]string{"what", "value"}, append(p.Machine.Rows(),
		[]string{"load averages at the end", p.LoadAfter},
		[]string{"Kubernetes", p.Kubernetes},
		[]string{"nodes", fmt.Sprint(p.Nodes)},
		[]string{"claims of each node", fmt.Sprint(p.Claims)},
		[]string{"duration", p.Took.Round(time.Second).String()},
	))
}

// phase returns the phase with the name; ok is false if it has not run.
func (p LoadPage) phase(name string) (phase fleet.Phase, ok bool) {
	for _, phase := range p.Phases {
		if phase.Name == name {
			return phase, true
		}
	}
	return phase, false
}

// The goals. Those of a daemon whose slices are away count what it does itself: a dry run, and
// for its first slices the kubelet helper's read of the node and 1 s of that helper's patience.
const (
	roundTrips = 3
	ownWaits   = 2 * time.Second
)

// The paces of a daemon, as in kubeletplugin/pace.go: what it writes at once, and then in each
// minute. Its slices give something new at that pace, and between two such writes they take it
// back once.
const (
	sliceBurst, slicesPerMinute = 4, 2
	eventBurst, eventsPerMinute = 10, 10
)

// mostWrites is how much one node may write meanwhile.
func mostWrites(counted time.Duration) (slices, events uint64) {
	gives := sliceBurst + uint64(slicesPerMinute*counted.Minutes())
	return 2*gives + 1, eventBurst + uint64(eventsPerMinute*counted.Minutes())
}

func (p LoadPage) goals() string {
	var rows [][]string
	judge := func(name, what, limit, measured string, verdict compare.Verdict) {
		rows = append(rows, []string{name, what, limit, measured, "**" + string(verdict) + "**"})
	}
	goal := func(name, what, limit, measured string, met bool) {
		verdict := compare.Missed
		if met {
			verdict = compare.Met
		}
		judge(name, what, limit, measured, verdict)
	}
	if quiet, ok := p.phase(fleet.PhaseQuiet); ok {
		goal(quiet.Name, "writes of all daemons in "+p.Settings.Quiet.String(), "0", fmt.Sprint(quiet.Writes()), quiet.Writes() == 0)
	}
	if restart, ok := p.phase(fleet.PhaseRestart); ok {
		goal(restart.Name, "writes of all daemons", "0", fmt.Sprint(restart.Writes()), restart.Writes() == 0)
		goal(restart.Name, "lists, and watches, of one kind of object by one daemon", "1", fmt.Sprint(restart.Watches), restart.Watches <= 1)
	}
	if kubelets, ok := p.phase(fleet.PhaseKubelets); ok {
		trips, waits := most(kubelets.Work)
		goal(kubelets.Name, "requests of one daemon until its slices are back", fmt.Sprintf("≤ %d", roundTrips), fmt.Sprint(trips), trips <= roundTrips)
		judge(kubelets.Name, "what one daemon waits for by itself until then", "≤ "+ownWaits.String(), between(waits), waits.AtMost(float64(ownWaits)))
	}
	if flicker, ok := p.phase(fleet.PhaseFlicker); ok {
		mostSlices, mostEvents := mostWrites(flicker.Counted)
		for _, row := range []struct {
			what, resource string
			limit          uint64
		}{{"stored writes of slices", "resourceslices", mostSlices}, {"stored events", "events", mostEvents}} {
			got := flicker.Stored[row.resource]
			goal(flicker.Name, row.what+" of one node in "+flicker.Counted.Round(time.Second).String(), fmt.Sprintf("≤ %d", row.limit), fmt.Sprint(got), got <= row.limit)
		}
	}
	return "## Goals\n" + plot.Table([]string{"phase", "what", "goal", "measured", "verdict"}, rows) + p.ended()
}

// most is of the daemons that did most: how many requests, and how long they waited by
// themselves. That is between their clock and real time.
func most(all []fleet.Work) (trips int, waits compare.Spread) {
	for _, work := range all {
		trips = max(trips, work.RoundTrips)
		waits.Low, waits.High = max(waits.Low, float64(work.Waits)), max(waits.High, float64(work.Idle))
	}
	return trips, waits
}

func between(waits compare.Spread) string {
	return plot.Duration(waits.Low) + " to " + plot.Duration(waits.High)
}

// ended says which watches do not count as those of a daemon that restarts.
func (p LoadPage) ended() string {
	restart, ok := p.phase(fleet.PhaseRestart)
	if !ok || restart.Ended == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s: watches that the API server ended, or lost: %d. As many that followed them do not count.\n", restart.Name, restart.Ended)
}

func (p LoadPage) phases() string {
	var rows [][]string
	for _, phase := range p.Phases {
		rows = append(rows, []string{
			phase.Name, fmt.Sprint(phase.Daemons), duration(phase.Took), fmt.Sprint(phase.Total()), fmt.Sprint(phase.Writes()), fmt.Sprint(phase.Busiest()),
			fmt.Sprint(phase.Refused), fmt.Sprint(phase.Failed), fmt.Sprint(phase.Unanswered), duration(phase.APIServerCPU), percentile(phase.Others, 0.5), percentile(phase.Others, 0.99),
		})
	}
	return "## Phases\n![" + figureTitle + "](" + loadFigure + ")\n\n" +
		"Another user writes and reads a small object of its own, with 20 requests a second. Its latency is the last two columns.\n\n" +
		plot.Table([]string{"phase", "daemons", "took", "requests", "writes", "in the busiest second", "refused (429)", "other errors", "without an answer", "CPU time of the API server", "latency of another user, p50", "p99"}, rows)
}

func percentile(values []time.Duration, part float64) string {
	if len(values) == 0 {
		return "–"
	}
	return duration(stats.Percentile(values, part))
}

func (p LoadPage) each() string {
	var rows [][]string
	for _, phase := range p.Phases {
		if len(phase.Each) > 0 {
			rows = append(rows, []string{phase.Name, fmt.Sprint(len(phase.Each)), percentile(phase.Each, 0.5), percentile(phase.Each, 0.99), duration(slices.Max(phase.Each))})
		}
	}
	return "## How long each took\nFrom the begin of the phase until a daemon is ready: its slices are published and read back. For claims, it is the time of the\n" +
		"kubelet's call. For kubelets and offline cores, it is the time until another client sees the new slices.\n\n" +
		plot.Table([]string{"phase", "how many", "p50", "p99", "longest"}, rows)
}

// back is "" if no slices were away.
func (p LoadPage) back() string {
	var rows [][]string
	for _, phase := range p.Phases {
		if len(phase.Work) == 0 {
			continue
		}
		var waits, idle []time.Duration
		for _, work := range phase.Work {
			waits, idle = append(waits, work.Waits), append(idle, work.Idle)
		}
		trips, longest := most(phase.Work)
		median := compare.Spread{Low: float64(stats.Percentile(waits, 0.5)), High: float64(stats.Percentile(idle, 0.5))}
		rows = append(rows, []string{phase.Name, percentile(phase.Each, 0.5), fmt.Sprint(trips), between(median), between(longest)})
	}
	if len(rows) == 0 {
		return ""
	}
	return "## What a daemon does until its slices are back\n" + `A daemon waits by itself while none of its requests is under way, and the next thing that happens is that it asks something.
What it waits for the API server is no such wait. The first number is on a clock that stands still while the daemons' process
has no CPU, so it is at least so long. The second one is in real time, and has what the daemon waited for a CPU. A goal is not
decided if it is in between. The kubelet helper looks once a second whether its first list has come.

` + plot.Table([]string{"phase", "slices are away, p50", "requests, at most", "waits by itself, p50", "waits by itself, longest"}, rows)
}

func (p LoadPage) requests() string {
	var rows [][]string
	for _, phase := range p.Phases {
		for _, kind := range kinds(phase.Requests) {
			rows = append(rows, []string{
				phase.Name, kind.Verb, kind.Resource, fmt.Sprint(phase.Requests[kind]),
				plot.Number(float64(phase.Requests[kind]) / float64(max(phase.Daemons, 1))), fmt.Sprint(phase.Most[kind]),
			})
		}
	}
	return "## Requests\nA list that is streamed counts as a watch. A dry-run is a create that stores nothing. Requests that were refused or\n" +
		"not answered, which the client repeats, do not count. Those with another error do. A goal counts what is\n" +
		"stored: writes that succeeded, and creates of what was there already, because the answer to an earlier one was lost.\n\n" +
		plot.Table([]string{"phase", "verb", "resource", "requests", "for each daemon", "most of one daemon"}, rows)
}

func kinds(of map[fleet.Kind]uint64) []fleet.Kind {
	return slices.SortedFunc(maps.Keys(of), func(a, b fleet.Kind) int {
		return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	})
}

// binSeconds is how much time a column of the figure covers.
const binSeconds = 10

var figureTitle = fmt.Sprintf("Requests of all daemons per second, mean of %d seconds", binSeconds)

func (p LoadPage) figure() plot.Columns {
	f := plot.Columns{Title: figureTitle, XLabel: "seconds", Width: binSeconds}
	verbs := map[string]bool{}
	for _, phase := range p.Phases {
		for kind := range phase.Requests {
			verbs[kind.Verb] = true
		}
	}
	f.Names = slices.Sorted(maps.Keys(verbs))
	var seconds []map[fleet.Kind]uint64
	for _, phase := range p.Phases {
		f.Marks = append(f.Marks, plot.Mark{At: len(seconds), Text: phase.Name})
		seconds = append(seconds, phase.Seconds...)
	}
	for bin := range slices.Chunk(seconds, binSeconds) {
		column := make([]float64, len(f.Names))
		for _, second := range bin {
			for kind, count := range second {
				if i, found := slices.BinarySearch(f.Names, kind.Verb); found {
					column[i] += float64(count) / float64(len(bin))
				}
			}
		}
		f.Columns = append(f.Columns, column)
	}
	return f
}

func (p LoadPage) notes() string {
	var text strings.Builder
	text.WriteString("## What happens\n")
	for _, phase := range p.Phases {
		fmt.Fprintf(&text, "- **%s**: %s\n", phase.Name, phase.Means)
	}
	text.WriteString(`
All daemons share the CPUs of this machine with the control plane, and with the program that plays the kubelets. On real
nodes, each daemon has CPUs of its own, and the requests of a restart come closer together. Daemons and the other user are
service accounts. Without flow control of the chart, the API server's priority and fairness serves both from the same queues
(` + "`service-accounts`" + `).

No container runs here, and a minute is short. ` + "`make e2e-audit`" + ` has 60 claims run on a real node for 10 minutes, and
fails if the audit log of the API server has a write of the driver. The kubelet may write meanwhile:
[upstream.md](upstream.md#pod-statuses-that-change-their-order) says when.
`)
	return text.String()
}
