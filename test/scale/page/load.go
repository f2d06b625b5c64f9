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
}

const loadFigure = "api-load.svg"

// Write writes the page and its figure to the folder.
func (p LoadPage) Write(folder string) error {
	return plot.WritePage(folder, "api-load.md", p.text(), map[string]string{loadFigure: p.figure().SVG()})
}

func (p LoadPage) text() string {
	return strings.Join([]string{loadIntroduction, p.machine(), p.goals(), p.phases(), p.each(), p.requests(), p.notes()}, "\n")
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

// The goals. Those of slices and events are what one node may write in any minute.
const (
	slicesBack      = 2 * time.Second
	slicesPerMinute = 6
	eventsPerMinute = 20
)

func (p LoadPage) goals() string {
	var rows [][]string
	goal := func(name, what, limit, measured string, met bool) {
		verdict := compare.Missed
		if met {
			verdict = compare.Met
		}
		rows = append(rows, []string{name, what, limit, measured, "**" + string(verdict) + "**"})
	}
	if quiet, ok := p.phase(fleet.PhaseQuiet); ok {
		goal(quiet.Name, "writes of all daemons in "+p.Settings.Quiet.String(), "0", fmt.Sprint(quiet.Writes()), quiet.Writes() == 0)
	}
	if restart, ok := p.phase(fleet.PhaseRestart); ok {
		goal(restart.Name, "writes of all daemons", "0", fmt.Sprint(restart.Writes()), restart.Writes() == 0)
		most := uint64(0)
		for kind, count := range restart.Most {
			if kind.Verb == "list" || kind.Verb == "watch" {
				most = max(most, count)
			}
		}
		goal(restart.Name, "lists, and watches, of one kind of object by one daemon", "1", fmt.Sprint(most), most <= 1)
	}
	if kubelets, ok := p.phase(fleet.PhaseKubelets); ok {
		longest := slices.Max(kubelets.Each)
		goal(kubelets.Name, "longest time without slices, of any node", "≤ "+slicesBack.String(), duration(longest), longest <= slicesBack)
	}
	if flicker, ok := p.phase(fleet.PhaseFlicker); ok {
		minutes := max(1, p.Settings.Flicker.Minutes())
		written, events := uint64(0), uint64(0)
		for kind, count := range flicker.Most {
			switch {
			case kind.Resource == "resourceslices" && kind.Writes():
				written += count
			case kind.Resource == "events" && kind.Writes():
				events += count
			}
		}
		for _, row := range []struct {
			what       string
			got, limit uint64
		}{{"writes of slices", written, slicesPerMinute}, {"events", events, eventsPerMinute}} {
			limit := uint64(float64(row.limit) * minutes)
			goal(flicker.Name, row.what+" of one node in "+p.Settings.Flicker.String(), fmt.Sprintf("≤ %d", limit), fmt.Sprint(row.got), row.got <= limit)
		}
	}
	return "## Goals\n" + plot.Table([]string{"phase", "what", "goal", "measured", "verdict"}, rows) + p.reasons()
}

// reasons says what is known of goals that are missed on a busy machine.
func (p LoadPage) reasons() (text string) {
	if restart, ok := p.phase(fleet.PhaseRestart); ok {
		watches := uint64(0)
		for kind, count := range restart.Requests {
			if kind.Verb == "watch" {
				watches += count
			}
		}
		if daemons := uint64(restart.Daemons); watches > daemons {
			text += fmt.Sprintf("\n%s: %d daemons began %d watches. Some daemons began another one in a phase in which the API server refused\n"+
				"%d requests and left %d without an answer.\n", restart.Name, daemons, watches, restart.Refused, restart.Unanswered)
		}
	}
	if kubelets, ok := p.phase(fleet.PhaseKubelets); ok && slices.Max(kubelets.Each) > slicesBack {
		late := 0
		for _, took := range kubelets.Each {
			if took > slicesBack {
				late++
			}
		}
		text += fmt.Sprintf("\n%s: %d of %d nodes were longer than %s without slices. The API server took\n"+
			"%s of CPU time in %s, and all daemons and kubelets share what is left of this machine.\n",
			kubelets.Name, late, len(kubelets.Each), slicesBack, duration(kubelets.APIServerCPU), duration(kubelets.Took))
	}
	return text
}

func (p LoadPage) phases() string {
	var rows [][]string
	for _, phase := range p.Phases {
		rows = append(rows, []string{
			phase.Name, fmt.Sprint(phase.Daemons), duration(phase.Took), fmt.Sprint(phase.Total()), fmt.Sprint(phase.Writes()), fmt.Sprint(phase.Busiest()),
			fmt.Sprint(phase.Refused), fmt.Sprint(phase.Unanswered), duration(phase.APIServerCPU), percentile(phase.Others, 0.5), percentile(phase.Others, 0.99),
		})
	}
	return "## Phases\n![" + figureTitle + "](" + loadFigure + ")\n\n" +
		"Another user writes and reads a small object of its own, with 20 requests a second. Its latency is the last two columns.\n\n" +
		plot.Table([]string{"phase", "daemons", "took", "requests", "writes", "in the busiest second", "refused (429)", "without an answer", "CPU time of the API server", "latency of another user, p50", "p99"}, rows)
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
		"not answered, which the client repeats, do not count.\n\n" +
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
service accounts without a flow schema of their own, so the API server's priority and fairness serves both from the
same queues (` + "`service-accounts`" + `). The chart can give the daemons [a flow schema of their own](chart.md).

No container runs here, and a minute is short. ` + "`make e2e-audit`" + ` has 60 claims run on a real node for 10 minutes, and
fails if the audit log of the API server has a write of the driver. The kubelet may write meanwhile:
[upstream.md](upstream.md#pod-statuses-that-change-their-order) says when.
`)
	return text.String()
}
