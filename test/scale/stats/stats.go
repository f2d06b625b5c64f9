// Package stats computes with the results of trials: percentiles, and ratios with their
// interval. It runs nothing.
package stats

import (
	"math"
	"slices"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/compare"
)

// Percentile returns the value that the given part (0 to 1) of the values does not exceed.
// There is at least one value.
func Percentile(values []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(part*float64(len(sorted))))-1, 0)]
}

// Interval is a ratio, and the range in which the true one is in 95 of 100 cases.
type Interval struct{ Ratio, Low, High float64 }

// Ratio returns the geometric mean of a/b, pair by pair, with its interval: Student's t of
// the logarithms. All are above 0. What has no partner does not count. The interval of a single
// pair is everything.
func Ratio(a, b []float64) Interval {
	a, b = a[:min(len(a), len(b))], b[:min(len(a), len(b))]
	n := float64(len(a))
	logs := make([]float64, len(a))
	mean := 0.0
	for i := range a {
		logs[i] = math.Log(a[i] / b[i])
		mean += logs[i] / n
	}
	if len(a) < 2 {
		return Interval{math.Exp(mean), 0, math.Inf(1)}
	}
	squares := 0.0
	for _, log := range logs {
		squares += (log - mean) * (log - mean)
	}
	half := quantile(len(a)-1) * math.Sqrt(squares/(n-1)/n)
	return Interval{math.Exp(mean), math.Exp(mean - half), math.Exp(mean + half)}
}

// AtLeast judges a goal that the ratio must reach. If it is inside the interval, it is not
// decided.
func (i Interval) AtLeast(goal float64) compare.Verdict {
	return compare.Spread{Median: i.Ratio, Low: i.Low, High: i.High}.AtLeast(goal)
}

// quantiles are Student's, two-sided for 95 %, by degrees of freedom from 1.
var quantiles = []float64{
	12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
	2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
}

// quantile of more degrees than are listed is that of the last one, which is larger: the
// interval is too wide by up to 4 %.
func quantile(degrees int) float64 { return quantiles[min(degrees, len(quantiles))-1] }

// Slope returns by how much y grows with each x: the line that fits best. There are at
// least two x, not all the same.
func Slope(x, y []float64) float64 {
	n, sumX, sumY := float64(len(x)), 0.0, 0.0
	for i := range x {
		sumX, sumY = sumX+x[i], sumY+y[i]
	}
	above, below := 0.0, 0.0
	for i := range x {
		d := x[i] - sumX/n
		above, below = above+d*(y[i]-sumY/n), below+d*d
	}
	return above / below
}
