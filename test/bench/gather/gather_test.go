package gather

import (
	"slices"
	"testing"
	"time"
)

func TestParseCollectsTheValuesOfEachRound(t *testing.T) {
	r := Result{}
	const round = `goos: linux
BenchmarkPair/cpus=64/claims=1/pair         	      20	    730495 ns/op	    284626.5 cpu-ns/op	  117738 B/op
    bench_test.go:1: 3 notes here 4
PASS
`
	if n := r.parse([]byte(round), ""); n != 1 {
		t.Errorf("%d benchmarks, want 1", n)
	}
	if n := r.parse([]byte(round), ""); n != 1 {
		t.Errorf("%d benchmarks, want 1", n)
	}
	if got := r.Values("Pair/cpus=64/claims=1/pair", "cpu-ns/op"); !slices.Equal(got, []float64{284626.5, 284626.5}) {
		t.Errorf("cpu-ns/op is %v in two rounds", got)
	}
	if n := r.parse([]byte(round), "other/"); n != 1 || len(r.Values("other/Pair/cpus=64/claims=1/pair", "cpu-ns/op")) != 1 {
		t.Errorf("%d benchmarks of another program, and %v", n, r)
	}
	if got := r.Values("Pair", "ns/op"); got != nil {
		t.Errorf("a benchmark that did not run has %v", got)
	}
}

func TestRepetitionsComeBeforeTime(t *testing.T) {
	for s, want := range map[Suite]string{{}: "50ms", {Times: 20}: "20x"} {
		if got := s.benchtime(50 * time.Millisecond); got != want {
			t.Errorf("%+v runs for %s, want %s", s, got, want)
		}
	}
}
