package cpufreq

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// What is divided and joined again is the same.
func TestPartsOfChanges(t *testing.T) {
	all := Changes{
		Frequencies: []Change{
			{Policies: cpuset.New(0, 2), Driver: "acpi-cpufreq", Before: Values{MaxKHz: 2_000_000}, Want: Values{MaxKHz: 1_000_000}},
			{Policies: cpuset.New(4), Driver: "acpi-cpufreq", Before: Values{MaxKHz: 3_000_000}, Want: Values{MaxKHz: 1_000_000}},
		},
		Idle: []Limit{{CPUs: cpuset.New(0, 1), Before: "0", Want: "20"}, {CPUs: cpuset.New(5), Before: "n/a", Want: "20"}},
	}
	part := all.Only(cpuset.New(2, 4, 9), cpuset.New(1, 9))
	if got := part.Policies(); got != cpuset.New(2, 4) {
		t.Errorf("the part has policies %s", got)
	}
	if got := part.IdleCPUs(); got != cpuset.New(1) || len(part.Idle) != 1 {
		t.Errorf("the part has idle states of cpus %s", got)
	}
	rest := all.Without(part)
	if rest.Policies() != cpuset.New(0) || rest.IdleCPUs() != cpuset.New(0, 5) {
		t.Errorf("the rest is %+v", rest)
	}
	if again := rest.Join(part); !again.Equal(Changes{all.Frequencies, all.Idle}) {
		t.Errorf("joined again: %+v, want %+v", again, all)
	}
	if rest.Policies() != cpuset.New(0) || !all.Without(all).IsZero() || !all.Join(Changes{}).Equal(all) {
		t.Error("a part changes the whole")
	}
}
