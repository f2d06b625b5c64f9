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
			{Name: fleet.PhaseQuiet, Means: "Nothing.", Daemons: 10, Seconds: []map[fleet.Kind]uint64{{}, {}, {}}, Requests: of(10, watch), Most: of(1, watch)},
			{Name: fleet.PhaseRestart, Daemons: 10, Requests: of(10, watch), Most: of(1, watch), Seconds: []map[fleet.Kind]uint64{of(10, watch)}},
			{Name: fleet.PhaseKubelets, Daemons: 10, Requests: of(10, slice), Most: of(1, slice), Each: []time.Duration{time.Second, 2 * time.Second}},
			{Name: fleet.PhaseFlicker, Daemons: 10, Requests: of(60, slice, event), Most: map[fleet.Kind]uint64{slice: 6, event: 20}, Seconds: slices.Repeat([]map[fleet.Kind]uint64{of(2, slice, event)}, 8)},
		},
	}
}

func TestGoalsOfLoadAreMetUpToTheLimit(t *testing.T) {
	text := loadPage().text()
	if met := strings.Count(text, "**"+string(compare.Met)+"**"); met != 6 || strings.Contains(text, string(compare.Missed)) {
		t.Errorf("%d goals are met, want 6:\n%s", met, text)
	}
	if again := loadPage().text(); again != text {
		t.Error("the page is another one each time")
	}
}

func TestFigureOfLoadGolden(t *testing.T) {
	files.Golden(t, "testdata/api-load.svg", loadPage().figure().SVG())
}

// Columns are of ten seconds, whatever begins in between.
func TestBinsOfTheFigure(t *testing.T) {
	f := loadPage().figure()
	if len(f.Columns) != 2 || len(f.Marks) != 4 || f.Marks[3].At != 4 {
		t.Fatalf("%d columns, marks %v", len(f.Columns), f.Marks)
	}
	// 10 watches, and 2 updates and 2 events in each of 6 + 2 seconds.
	if got, want := fmt.Sprint(f.Names, f.Columns), "[create update watch] [[1.2 1.2 1] [2 2 0]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestReasonsOfMissedGoals(t *testing.T) {
	p := loadPage()
	if reasons := p.reasons(); reasons != "" {
		t.Errorf("nothing is missed, but the reasons are %s", reasons)
	}
	p.Phases[1].Requests[fleet.Kind{Verb: "watch", Resource: "resourceslices"}] = 12
	p.Phases[1].Refused, p.Phases[1].Unanswered = 7, 3
	p.Phases[2].Each[1] = slicesBack + 1
	for _, want := range []string{"10 daemons began 12 watches", "refused\n7 requests and left 3", " nodes were longer than 2s without slices"} {
		if !strings.Contains(p.reasons(), want) {
			t.Errorf("no %q in:\n%s", want, p.reasons())
		}
	}
}

func TestGoalsOfLoadAreMissedBeyondTheLimit(t *testing.T) {
	for what, change := range map[string]func(p *LoadPage){
		"a write in quiet": func(p *LoadPage) {
			p.Phases[0].Requests[fleet.Kind{Verb: "patch", Resource: "resourceclaims/status"}] = 1
		},
		"a write after a restart": func(p *LoadPage) { p.Phases[1].Requests[fleet.Kind{Verb: "update", Resource: "resourceslices"}] = 1 },
		"two lists":               func(p *LoadPage) { p.Phases[1].Most[fleet.Kind{Verb: "list", Resource: "pods"}] = 2 },
		"slices away":             func(p *LoadPage) { p.Phases[2].Each[1]++ },
		"slices written":          func(p *LoadPage) { p.Phases[3].Most[fleet.Kind{Verb: "create", Resource: "resourceslices"}] = 1 },
		"events":                  func(p *LoadPage) { p.Phases[3].Most[fleet.Kind{Verb: "patch", Resource: "events"}] = 1 },
	} {
		p := loadPage()
		change(&p)
		if missed := strings.Count(p.goals(), "**"+string(compare.Missed)+"**"); missed != 1 {
			t.Errorf("%s: %d goals are missed, want 1:\n%s", what, missed, p.goals())
		}
	}
}
