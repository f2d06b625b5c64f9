package compare

import (
	"fmt"
	"maps"
	"slices"
)

// Values has what benchmarks printed, one value for each round.
type Values interface {
	Values(benchmark, unit string) []float64
}

// Comparison is of one benchmark with another one that ran in the same rounds. A lower
// ratio is better.
type Comparison struct {
	Name string
	Kind string  // comparisons of one kind have one figure; empty in a short run
	A, B string  // benchmarks
	Goal float64 // that the ratio must not exceed; 0: there is none
}

// Of returns the ratio in the unit. It is an error if one of the two did not run.
func (c Comparison) Of(v Values, unit string) (Spread, error) {
	a, b := v.Values(c.A, unit), v.Values(c.B, unit)
	if len(a) == 0 || len(a) != len(b) {
		return Spread{}, fmt.Errorf("%s: %d values of %s, %d of %s", c.Name, len(a), c.A, len(b), c.B)
	}
	return Ratio(a, b), nil
}

// Worse returns a line for each recorded ratio that was exceeded by more than the factor,
// or was not measured.
func Worse(recorded map[string]float64, measured map[string]Spread, factor float64) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		now, ok := measured[name]
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s: not measured", name))
		case now.Median > factor*recorded[name]:
			lines = append(lines, fmt.Sprintf("%s: the ratio is %.3g (%.3g to %.3g in the rounds), recorded is %.3g", name, now.Median, now.Low, now.High, recorded[name]))
		}
	}
	return lines
}
