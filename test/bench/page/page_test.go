package page

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/placement"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/trace"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// measured is a page on which every benchmark took the same time.
func measured() Page {
	p := Page{
		Machine: host.Machine{Processor: "P", CPUs: 2, Kernel: "6.12", Go: "1.26", Load: "0, 0, 0"}, Rounds: 3, Each: time.Millisecond,
		Comparisons: []compare.Comparison{{Kind: Choice, Name: "fast", A: "Hook/claims=1/plan", B: "Hook/claims=256/plan", Goal: 1}, {Kind: OneFile, Name: "slow / read one file", A: "Hook/claims=1/plan", B: "Hook/claims=32/plan", Goal: 0.5}},
		Values:      map[string]map[string][]float64{}, Others: map[string]map[string][]float64{"Wait": {"ns/op": {5, 5, 5}}},
		Programs: []host.Program{{Name: kubectl, Bytes: 44e6, Starts: []float64{19e6, 50e6, 19e6}}},
	}
	put := func(name, unit string) { p.Values[name] = map[string][]float64{unit: {1000, 1000, 1000}} }
	for _, functions := range []string{"8", "16"} {
		put("Slice/zones=8/functions="+functions, "bytes")
	}
	for _, load := range measure.Loads() {
		put("PrepareUnprepare/"+load.String()+"/files", measure.CPUUnit)
		put("Pair/"+load.String()+"/pair", measure.CPUUnit)
	}
	for _, name := range []string{"PrepareUnprepare/disk/pair", "Pair/disk/pair"} {
		p.Values[name] = map[string][]float64{"ns/op": {1, 2, 3}, "fsync-ns/op": {1, 2, 3}}
	}
	for _, g := range operations() {
		for _, size := range g.sizes() {
			put(g.benchmark(size), measure.CPUUnit)
		}
	}
	for _, load := range measure.Loads() {
		put("PrepareUnprepare/"+load.String()+"/pair", measure.CPUUnit)
	}
	for _, machine := range placement.Machines() {
		r := placement.Result{Machine: machine}
		for range placement.Programs() {
			r.Scores = append(r.Scores, trace.Score{Placed: 10, Zones: 10, L3s: 10})
		}
		p.Placements = append(p.Placements, r)
	}
	return p
}

func TestPageSaysWhichGoalsAreMissed(t *testing.T) {
	p := measured()
	p.Placements[1].Scores[0].FailedFree = 1 // ours
	text, figures, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| fast | ≤ 1 | 1 | **met** |",
		"| slow / read one file | ≤ 0.5 | 1 | **missed** |",
		"| slow | 1 |",
		"better on 0 of 6 machines, equal on 5, worse on [" + placement.Machines()[1] + "] | **missed** |",
		"| `kubectl numa` on disk | ≤ 45 MB | 44.0 MB | **met** |",
		"| hook, plan | 1 µs | 1 µs | 1 µs | 0.00 |",
		"| `Wait` | 5 ns | clock |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(text, "client-go registers them") { // the reason for a goal that is met
		t.Error("the page says why a goal is missed that is met")
	}
	p.Programs[0].Bytes = 46e6
	if text, _, err = p.render(); err != nil || !strings.Contains(text, "client-go registers them") {
		t.Errorf("the page does not say why a goal is missed, %v", err)
	}
	if t.Failed() {
		t.Log(text)
	}
	for name := range figures {
		if !strings.Contains(text, "("+name+")") {
			t.Errorf("the page does not show %s", name)
		}
	}
}

func TestEachKindOfRatioHasAFigure(t *testing.T) {
	p := measured()
	_, figures, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"benchmarks-choice.svg": ">fast<", "benchmarks-file.svg": ">slow<"} {
		if !strings.Contains(figures[file], want) {
			t.Errorf("%s lacks %q:\n%s", file, want, figures[file])
		}
	}
	if strings.Contains(figures["benchmarks-choice.svg"], ">slow<") {
		t.Error("a figure has ratios of another kind")
	}
	p.Comparisons[0].Kind = "nonsense"
	if _, _, err := p.render(); err == nil || err.Error() != "1 of 2 ratios are of no kind" {
		t.Errorf("a ratio of no kind: %v", err)
	}
}

func TestPageNeedsEveryValue(t *testing.T) {
	p := measured()
	delete(p.Values, "Hook/claims=32/plan")
	if _, _, err := p.render(); err == nil {
		t.Error("without a value there is a page")
	}
}
