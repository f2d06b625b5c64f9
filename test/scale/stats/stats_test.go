package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
)

func TestPercentileIsOneOfTheValues(t *testing.T) {
	values := make([]time.Duration, 100)
	for i := range values {
		values[i] = time.Duration(100 - i)
	}
	for part, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.995: 100, 1: 100} {
		if got := Percentile(values, part); got != want {
			t.Errorf("percentile %g is %d, want %d", part, got, want)
		}
	}
	if got := Percentile([]time.Duration{7}, 0.99); got != 7 {
		t.Errorf("percentile of one value: %d", got)
	}
}

// The logarithms are 0 and ln 4: mean ln 2, standard deviation 0.980.
func TestRatioOfTwoPairs(t *testing.T) {
	got := Ratio([]float64{10, 40}, []float64{10, 10})
	half := 12.706 * math.Log(4) / 2
	for _, row := range []struct{ got, want float64 }{{got.Ratio, 2}, {got.Low, 2 / math.Exp(half)}, {got.High, 2 * math.Exp(half)}} {
		if math.Abs(row.got/row.want-1) > 1e-9 {
			t.Errorf("%+v: %g, want %g", got, row.got, row.want)
		}
	}
}

func TestPairsCancelWhatBothShare(t *testing.T) {
	got := Ratio([]float64{9, 90, 0.9, 18}, []float64{10, 100, 1, 20}) // the machine was 10 times as fast
	if math.Abs(got.Low-0.9) > 1e-9 || math.Abs(got.High-0.9) > 1e-9 {
		t.Errorf("%+v, want 0.9 with no width", got)
	}
}

func TestWhatHasNoPartnerDoesNotCount(t *testing.T) {
	want := Ratio([]float64{2, 8}, []float64{1, 2})
	for name, got := range map[string]Interval{"more a": Ratio([]float64{2, 8, 50}, []float64{1, 2}), "more b": Ratio([]float64{2, 8}, []float64{1, 2, 50})} {
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

func TestOnePairDecidesNothing(t *testing.T) {
	got := Ratio([]float64{3}, []float64{1})
	if math.Abs(got.Ratio-3) > 1e-9 || got.AtLeast(0.1) != compare.NotDecided || got.AtLeast(100) != compare.NotDecided {
		t.Errorf("%+v", got)
	}
}

// Of 2,000 experiments with five pairs, about 95 % must have the true ratio inside.
func TestIntervalHasTheTrueRatioIn95Of100(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inside := 0
	for range 2000 {
		var a, b []float64
		for range 5 {
			a, b = append(a, 0.8*math.Exp(0.1*r.NormFloat64())), append(b, math.Exp(0.1*r.NormFloat64()))
		}
		if i := Ratio(a, b); i.Low <= 0.8 && 0.8 <= i.High {
			inside++
		}
	}
	if inside < 1860 || inside > 1940 {
		t.Errorf("%d of 2000 intervals have the true ratio", inside)
	}
}

func TestGoalInsideTheIntervalIsNotDecided(t *testing.T) {
	i := Interval{0.95, 0.9, 1}
	for goal, want := range map[float64]compare.Verdict{0.9: compare.Met, 0.95: compare.NotDecided, 1.01: compare.Missed} {
		if got := i.AtLeast(goal); got != want {
			t.Errorf("at least %g: %s, want %s", goal, got, want)
		}
	}
}

func TestQuantilesFallWithTheDegrees(t *testing.T) {
	for degrees := 2; degrees < 40; degrees++ {
		if quantile(degrees) > quantile(degrees-1) || quantile(degrees) < 1.96 {
			t.Errorf("%d degrees: %g after %g", degrees, quantile(degrees), quantile(degrees-1))
		}
	}
}

func TestSlopeOfALine(t *testing.T) {
	if got := Slope([]float64{1, 2, 9}, []float64{5, 7, 21}); math.Abs(got-2) > 1e-9 {
		t.Errorf("slope %g, want 2", got)
	}
}
