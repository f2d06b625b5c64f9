package main

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/gather"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

func cases(t *testing.T) []Case {
	t.Helper()
	list, err := allCases()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEveryCaseIsInATableAndHasANameOfItsOwn(t *testing.T) {
	shown := map[string]bool{}
	for _, table := range tables {
		for _, name := range table.cases {
			shown[name] = true
		}
	}
	names := map[string]bool{}
	for _, c := range cases(t) {
		if !shown[c.Name] || names[c.Name] || strings.ContainsAny(c.Name, " /_") {
			t.Errorf("case %q: it is in no table, or its name is taken or not that of a benchmark", c.Name)
		}
		names[c.Name] = true
	}
	for name := range shown {
		if !names[name] {
			t.Errorf("a table has %q, which is no case", name)
		}
	}
	for _, g := range goals() {
		if !names[g.a] || !names[g.b] {
			t.Errorf("goal %q is of %q and %q, which are no cases", g.what, g.a, g.b)
		}
	}
}

// The benchmark is compiled elsewhere, so the compiler does not compare the two.
func TestBenchmarkReadsEachFieldOfACase(t *testing.T) {
	reader, err := os.ReadFile("../../upstream/testdata/cases_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []reflect.Type{reflect.TypeFor[Case](), reflect.TypeFor[shape.Held]()} {
		for field := range of.Fields() {
			if field.Name != "Title" && !strings.Contains(string(reader), field.Name) {
				t.Errorf("the benchmark does not read %s", field.Name)
			}
		}
	}
}

func TestFullZonesAreLastWhereTheyShouldBe(t *testing.T) {
	for _, c := range cases(t) {
		want, ok := map[string][]string{
			oursFilled:      {"numa-3", "numa-0", "numa-1", "numa-2"},
			"ours-75-first": {"numa-0", "numa-1", "numa-2", "numa-3"},
		}[c.Name]
		if !ok {
			continue
		}
		var names []string
		for _, device := range c.Slices[0].Spec.Devices {
			names = append(names, device.Name)
		}
		if !slices.Equal(names, want) || len(c.Held) != 3 {
			t.Errorf("%s: %v, and %d are full", c.Name, names, len(c.Held))
		}
	}
}

func TestGoalHasOneLimitOrTwo(t *testing.T) {
	around := compare.Spread{Median: 1, Low: 0.9, High: 1.1}
	for _, test := range []struct {
		least, most float64
		limit       string
		want        compare.Verdict
	}{
		{0.9, 0, "≥ 0.9", compare.Met},
		{1, 0, "≥ 1", compare.NotDecided},
		{1.2, 0, "≥ 1.2", compare.Missed},
		{0, 2.2, "≤ 2.2", compare.Met},
		{0, 0.5, "≤ 0.5", compare.Missed},
		{0.85, 1.15, "0.85 to 1.15", compare.Met},
		{0.85, 1, "0.85 to 1", compare.NotDecided},
		{0.95, 1.15, "0.95 to 1.15", compare.NotDecided},
		{0.95, 0.99, "0.95 to 0.99", compare.NotDecided},
		{0.2, 0.85, "0.2 to 0.85", compare.Missed},
	} {
		g := goal{least: test.least, most: test.most}
		if got := g.judge(around); got != test.want || g.limit() != test.limit {
			t.Errorf("%s: %s, want %s, %s", g.limit(), got, test.limit, test.want)
		}
	}
}

// filled is a page whose cases take so many nanoseconds.
func filled(t *testing.T, load string, times map[string]float64) Page {
	t.Helper()
	p := Page{
		Machine: host.Machine{Load: load}, Rounds: 3, Cases: cases(t), Values: gather.Result{},
		Versions: []Version{{now, "v0.37.9", "1.26.0"}, {next, "v0.38.0", "1.27.0"}},
	}
	for _, c := range p.Cases {
		ns := times[c.Name]
		if ns == 0 {
			ns = 10_000
		}
		for _, v := range p.Versions {
			p.Values[key(v.Name, c.Name)] = map[string][]float64{"cpu-ns/op": {ns, 2 * ns, 3 * ns}, "allocs/op": {100, 100, 100}}
		}
	}
	return p
}

func TestPageJudgesOnAQuietMachineOnly(t *testing.T) {
	times := map[string]float64{besidePerCPU: 200_000, besideFunctions: 60_000, oursMany: 11_000}
	for load, verdicts := range map[string]bool{"0.40, 1.20, 3.00": true, "1.50, 0.40, 0.30": false} {
		text, err := filled(t, load, times).render()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text, "| verdict |"); got != verdicts {
			t.Errorf("load %s: verdicts: %t, want %t", load, got, verdicts)
		}
		if got := strings.Contains(text, "**met**") || strings.Contains(text, "**missed**"); got != verdicts {
			t.Errorf("load %s: a verdict: %t, want %t", load, got, verdicts)
		}
		if got := strings.Contains(text, "judges no goal"); got == verdicts {
			t.Errorf("load %s: it says that it judges no goal: %t", load, got)
		}
		for _, want := range []string{
			"| 1.38 | a GPU's claim beside 4 zones and 8 functions / alone | ≤ 4.5 | 6 |",
			"| 1.38 | ours with 50,000 shares elsewhere / with none | 0.85 to 1.15 | 1.1 |",
			"| Kubernetes 1.38 | module v0.38.0, compiled with Go 1.27.0 |",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("load %s: there is no line %s", load, want)
			}
		}
	}
}

func TestOnlyShortTimesAreShown(t *testing.T) {
	p := filled(t, "0", map[string]float64{besideZones: 25_000})
	for name, want := range map[string][]string{
		gpu:         {"1", "20.0 (15.0 to 25.0)", "100"},
		besideZones: {"2.5", "–", "100"},
	} {
		if got, err := p.cells(next, name, gpu); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestPageNeedsEveryCase(t *testing.T) {
	p := filled(t, "0", nil)
	delete(p.Values, key(next, "cache-ways"))
	if _, err := p.render(); err == nil || !strings.Contains(err.Error(), "cache-ways") {
		t.Errorf("without values of a case: %v", err)
	}
}
