package trace

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestTraceNeverHasMoreThanTheLoad(t *testing.T) {
	m := sample.Machine(t, "epyc-2s-nps4")
	held := map[int]int{}
	busy, most := 0, 0
	for _, e := range New(m, 2000) {
		if n, ok := held[e.Claim]; e.CPUs == 0 {
			if !ok {
				t.Fatalf("claim %d ends and has not begun", e.Claim)
			}
			busy -= n
			delete(held, e.Claim)
			continue
		}
		held[e.Claim] = e.CPUs
		busy += e.CPUs
		most = max(most, busy)
	}
	if limit := load * float64(m.Online.Size()); float64(most) > limit || float64(most) < 0.95*limit {
		t.Errorf("claims have %d CPUs at most, the load is %g", most, limit)
	}
}

func TestProgramsOnlyPlaceOnFreeCPUs(t *testing.T) {
	for _, name := range []string{"intel-2s-snc3", "epyc-2s-nps4", "offline-and-hotplug"} {
		m := sample.Machine(t, name)
		reserved := m.Cores[0].CPUs
		for program, placer := range map[string]Placer{
			"driver": NewDriver(m, reserved), "spanning": NewSpanning(m, reserved), "first fit": NewFirstFit(m, reserved),
		} {
			score, err := Run(m, reserved, New(m, 1000), placer)
			if err != nil || score.WrongPlacing > 0 || score.Placed+score.Failed != 1000 {
				t.Errorf("%s on %s: %+v, %v", program, name, score, err)
			}
		}
	}
}

func TestScoreCountsWhatAClaimHas(t *testing.T) {
	m := sample.Machine(t, "rig") // cores of two siblings side by side, two in each L3, four in each NUMA node
	var s Score
	s.count(m, cpuset.New(0, 1, 2))
	if s.Zones != 1 || s.L3s != 1 || s.SplitCores != 1 {
		t.Errorf("%+v, want 1 NUMA node, 1 L3, 1 split core", s)
	}
	s.count(m, m.Zones[0].CPUs.Union(cpuset.New(8)))
	if s.Zones != 3 || s.SplitCores != 2 || s.Placed != 2 {
		t.Errorf("%+v, want 3 NUMA nodes and 2 split cores", s)
	}
}

func TestCompareIsInTheOrderOfHarm(t *testing.T) {
	best := Score{Placed: 100, Zones: 100, L3s: 120, SplitCores: 10}
	for name, worse := range map[string]Score{
		"a failure":      {Placed: 99, FailedFree: 1, Zones: 99, L3s: 99},
		"more nodes":     {Placed: 100, Zones: 101, L3s: 100},
		"more L3s":       {Placed: 100, Zones: 100, L3s: 130},
		"more of a core": {Placed: 100, Zones: 100, L3s: 120, SplitCores: 11},
	} {
		if best.Compare(worse) >= 0 || worse.Compare(best) <= 0 {
			t.Errorf("%s: %+v is not better than %+v", name, best, worse)
		}
	}
	if c := best.Compare(best); c != 0 {
		t.Errorf("the same score is %d", c)
	}
}
