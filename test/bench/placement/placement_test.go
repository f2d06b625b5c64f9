package placement

import (
	"testing"
)

// TestEachProgramPlaces is a short comparison: what each program makes of it is in the
// page of benchmarks.
func TestEachProgramPlaces(t *testing.T) {
	results, err := Run(40, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for i, program := range Programs() {
			s := r.Scores[i]
			if s.Placed < 20 || s.Placed+s.Failed != 40 {
				t.Errorf("%s on %s: %+v", program.Name, r.Machine, s)
			}
			if !program.Spans && s.Zones != s.Placed {
				t.Errorf("%s on %s: %d claims have %d NUMA nodes", program.Name, r.Machine, s.Placed, s.Zones)
			}
			t.Logf("%-15s %-45s %v %v failed with CPUs free %d of %d failed, %v", r.Machine, program.Name, s.Averages(), s.Placed, s.FailedFree, s.Failed, r.Took[i])
		}
	}
}
