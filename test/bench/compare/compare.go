// Package compare computes with the values of rounds: medians, ratios, growth, and
// whether a goal is met. It runs nothing.
package compare

import (
	"math"
	"slices"
)

// Spread is the median of the rounds, with the lowest and the highest of them, unless it says
// otherwise. Of seven rounds these are an interval for the true median that is right in 98 of
// 100 cases.
type Spread struct{ Median, Low, High float64 }

// Of returns the spread of values. There is at least one.
func Of(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// Middle returns the median of values with their quartiles, which a few bad rounds do not
// move. There is at least one.
func Middle(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	at := func(part float64) float64 {
		position := part * float64(len(sorted)-1)
		below := int(position)
		above := min(below+1, len(sorted)-1)
		return sorted[below] + (position-float64(below))*(sorted[above]-sorted[below])
	}
	return Spread{at(0.5), at(0.25), at(0.75)}
}

// MiddleRatio returns the median of a/b, round by round, with its quartiles. There are as
// many a as b.
func MiddleRatio(a, b []float64) Spread { return Middle(divide(a, b)) }

// Ratio returns the spread of a/b, round by round. There are as many a as b.
func Ratio(a, b []float64) Spread { return Of(divide(a, b)) }

func divide(a, b []float64) []float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// Inverse returns the spread of b/a for that of a/b.
func (s Spread) Inverse() Spread { return Spread{1 / s.Median, 1 / s.High, 1 / s.Low} }

// Verdict says whether a goal is reached.
type Verdict string

// The verdicts.
const (
	Met        Verdict = "met"
	Missed     Verdict = "missed"
	NotDecided Verdict = "not decided"
)

// AtMost judges a goal that the value must not exceed. If some rounds exceed it and
// others do not, it is not decided.
func (s Spread) AtMost(goal float64) Verdict {
	switch {
	case s.High <= goal:
		return Met
	case s.Low > goal:
		return Missed
	}
	return NotDecided
}

// AtLeast judges a goal that the value must reach.
func (s Spread) AtLeast(goal float64) Verdict {
	switch {
	case s.Low >= goal:
		return Met
	case s.High < goal:
		return Missed
	}
	return NotDecided
}

// Exponent returns e where y grows as x to the power of e: the slope of the line that
// fits the logarithms best. There are at least two x, not all the same.
func Exponent(x, y []float64) float64 {
	var sumX, sumY float64
	n := float64(len(x))
	for i := range x {
		sumX, sumY = sumX+math.Log(x[i]), sumY+math.Log(y[i])
	}
	var above, below float64
	for i := range x {
		d := math.Log(x[i]) - sumX/n
		above, below = above+d*(math.Log(y[i])-sumY/n), below+d*d
	}
	return above / below
}
