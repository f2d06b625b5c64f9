package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/fleet"
)

// start is a pair in which another user waits so long, at most, without and with flow control.
func start(without, with time.Duration) fleet.Pair {
	phase := func(longest time.Duration, refused uint64) fleet.Phase {
		return fleet.Phase{Took: 20 * time.Second, Each: []time.Duration{8 * time.Second, 20 * time.Second}, Others: []time.Duration{4 * time.Millisecond, longest * time.Millisecond}, Refused: refused}
	}
	return fleet.Pair{Without: phase(without, 70), With: phase(with, 0)}
}

// loadPage is of 10 daemons that keep every goal exactly.
func loadPage() LoadPage {
	slice, event := fleet.Kind{Verb: "update", Resource: "resourceslices"}, fleet.Kind{Verb: "create", Resource: "events"}
	watch := fleet.Kind{Verb: "watch", Resource: "resourceslices"}
	of := func(count uint64, kinds ...fleet.Kind) map[fleet.Kind]uint64 {
		all := make(map[fleet.Kind]uint64)
		for _, kind := range kinds {
			all[kind] = count
		}
		return all
	}
	return LoadPage{
		Kubernetes: "1.37", Nodes: 10, Claims: 4, Settings: fleet.Settings{Quiet: time.Minute, Reboots: 10, Flicker: time.Minute},
		Phases: []fleet.Phase{
			{Name: fleet.PhaseNone, Took: 30 * time.Second, Seconds: []map[fleet.Kind]uint64{{}, {}, {}}, Others: []time.Duration{3 * time.Millisecond, 5 * time.Millisecond}},
			{Name: fleet.PhaseQuiet, Means: "Nothing.", Daemons: 10, Requests: of(10, watch), Most: of(1, watch)},
			{Name: fleet.PhaseRestart, Daemons: 10, Requests: of(10, watch), Most: of(2, watch), Ended: 1, Watches: 1, Seconds: []map[fleet.Kind]uint64{of(10, watch)}},
			{Name: fleet.PhaseKubelets, Daemons: 10, Requests: of(10, slice), Most: of(1, slice), Each: []time.Duration{time.Second, 9 * time.Second}, Work: []fleet.Work{{RoundTrips: 3, Waits: time.Second, Idle: 2 * time.Second}, {RoundTrips: 2, Idle: time.Millisecond}}},
			{Name: fleet.PhaseFlicker, Daemons: 10, Counted: 66 * time.Second, Requests: of(60, slice, event), Most: map[fleet.Kind]uint64{slice: 13, event: 22}, Stored: map[string]uint64{"resourceslices": 13, "events": 21}, Failed: 2, Seconds: slices.Repeat([]map[fleet.Kind]uint64{of(2, slice, event)}, 8)},
		},
		Starts: []fleet.Pair{start(500, 40), start(600, 50)},
	}
}

func TestGoalsOfLoadAreMetUpToTheLimit(t *testing.T) {
	text := loadPage().text()
	if met := strings.Count(text, "**"+string(compare.Met)+"**"); met != 7 || strings.Contains(text, string(compare.Missed)) {
		t.Errorf("%d goals are met, want 7:\n%s", met, text)
	}
	if again := loadPage().text(); again != text {
		t.Error("the page is another one each time")
	}
}

func TestPageOfLoadGolden(t *testing.T) {
	p := loadPage()
	files.Golden(t, "testdata/api-load.md", p.text())
	files.Golden(t, "testdata/api-load.svg", p.figure().SVG())
}

// Columns are of ten seconds, whatever begins in between.
func TestBinsOfTheFigure(t *testing.T) {
	f := loadPage().figure()
	if len(f.Columns) != 2 || len(f.Marks) != 5 || f.Marks[4].At != 4 {
		t.Fatalf("%d columns, marks %v", len(f.Columns), f.Marks)
	}
	// 10 watches, and 2 updates and 2 events in each of 6 + 2 seconds.
	if got, want := fmt.Sprint(f.Names, f.Columns), "[create update watch] [[1.2 1.2 1] [2 2 0]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDifferenceOfFlowControl(t *testing.T) {
	for want, starts := range map[string][]fleet.Pair{
		"p99 is 0.0816 times as long":          {start(500, 40), start(600, 50)},
		"p99 is longer: 12.2 times":            {start(40, 500), start(50, 600)},
		"do not show that flow control":        {start(500, 40), start(40, 600)},
		"| on | 4 ms | 24.5 ms | 45 ms | 8 s ": {start(500, 40), start(600, 50)},
	} {
		p := loadPage()
		p.Starts = starts
		if text := p.flowControl(); !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// On a busy machine, the wait is somewhere between two numbers.
func TestWaitsAreNotDecidedWhileTheMachineIsBusy(t *testing.T) {
	p := loadPage()
	p.Phases[3].Work[1].Idle = ownWaits + 1
	if goals := p.goals(); strings.Count(goals, "**"+string(compare.NotDecided)+"**") != 1 || strings.Contains(goals, string(compare.Missed)) {
		t.Error(goals)
	}
}

func TestGoalsOfLoadAreMissedBeyondTheLimit(t *testing.T) {
	for what, change := range map[string]func(p *LoadPage){
		"a write in quiet": func(p *LoadPage) {
			p.Phases[1].Requests[fleet.Kind{Verb: "patch", Resource: "resourceclaims/status"}] = 1
		},
		"a write after a restart": func(p *LoadPage) { p.Phases[2].Requests[fleet.Kind{Verb: "update", Resource: "resourceslices"}] = 1 },
		"two lists":               func(p *LoadPage) { p.Phases[2].Watches = 2 },
		"a request more":          func(p *LoadPage) { p.Phases[3].Work[0].RoundTrips++ },
		"a wait": func(p *LoadPage) {
			p.Phases[3].Work[1].Waits, p.Phases[3].Work[1].Idle = ownWaits+1, ownWaits+1
		},
		"slices written": func(p *LoadPage) { p.Phases[4].Stored["resourceslices"]++ },
		"events":         func(p *LoadPage) { p.Phases[4].Stored["events"]++ },
	} {
		p := loadPage()
		change(&p)
		if missed := strings.Count(p.goals(), "**"+string(compare.Missed)+"**"); missed != 1 {
			t.Errorf("%s: %d goals are missed, want 1:\n%s", what, missed, p.goals())
		}
	}
}
