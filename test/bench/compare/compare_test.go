package compare

import (
	"math"
	"slices"
	"testing"
)

func TestRatioIsRoundByRound(t *testing.T) {
	// The machine was three times as slow in the second round.
	if got, want := Ratio([]float64{1, 3, 2}, []float64{10, 30, 10}), (Spread{0.1, 0.1, 0.2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := Of([]float64{4, 1, 3, 2}), (Spread{2.5, 1, 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := (Spread{0.5, 0.25, 1}).Inverse(), (Spread{2, 1, 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMiddleIsWithoutTheWorstRounds(t *testing.T) {
	if got, want := Middle([]float64{100, 1, 4, 2, 3}), (Spread{3, 2, 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := Middle([]float64{1, 2}), (Spread{1.5, 1.25, 1.75}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := MiddleRatio([]float64{1, 3, 2}, []float64{2, 6, 4}), (Spread{0.5, 0.5, 0.5}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestVerdictNeedsAllRounds(t *testing.T) {
	s := Spread{2, 1, 3}
	for goal, want := range map[float64]Verdict{3: Met, 2.5: NotDecided, 1: NotDecided, 0.5: Missed} {
		if got := s.AtMost(goal); got != want {
			t.Errorf("at most %g: %s, want %s", goal, got, want)
		}
	}
	for goal, want := range map[float64]Verdict{1: Met, 1.5: NotDecided, 3: NotDecided, 4: Missed} {
		if got := s.AtLeast(goal); got != want {
			t.Errorf("at least %g: %s, want %s", goal, got, want)
		}
	}
}

func TestExponentOfAPower(t *testing.T) {
	x := []float64{64, 256, 512, 1024}
	for _, e := range []float64{0, 0.5, 1, 2} {
		var y []float64
		for _, v := range x {
			y = append(y, 7*math.Pow(v, e))
		}
		if got := Exponent(x, y); math.Abs(got-e) > 1e-9 {
			t.Errorf("exponent %g, want %g", got, e)
		}
	}
}

type values map[string][]float64

func (v values) Values(benchmark, _ string) []float64 { return v[benchmark] }

func TestComparisonNeedsBothSides(t *testing.T) {
	v := values{"ours": {1, 1}, "theirs": {2, 4}, "short": {1}}
	if got, err := (Comparison{A: "ours", B: "theirs"}).Of(v, ""); err != nil || got.Median != 0.375 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, b := range []string{"short", "none"} {
		if got, err := (Comparison{A: "ours", B: b}).Of(v, ""); err == nil {
			t.Errorf("with %s the ratio is %+v, want an error", b, got)
		}
	}
}

func TestWorseIsByMoreThanTheFactor(t *testing.T) {
	recorded := map[string]float64{"same": 1, "slower": 1, "gone": 1, "faster": 1}
	measured := map[string]Spread{"same": {1.9, 0.5, 9}, "slower": {2.1, 1, 3}, "faster": {0.1, 0.1, 0.1}, "new": {99, 99, 99}}
	got := Worse(recorded, measured, 2)
	want := []string{"gone: not measured", "slower: the ratio is 2.1 (1 to 3 in the rounds), recorded is 1"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
