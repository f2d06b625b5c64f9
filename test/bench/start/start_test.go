package start

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/startup"
)

func TestPageHasDifferencesOfPairs(t *testing.T) {
	sample := func(first, hooks float64) startup.Sample {
		return startup.Sample{Milliseconds: []float64{first, 300, 20, 80}, Counts: map[string]float64{"processes (hooks)": hooks}}
	}
	var pairs []startup.Pair
	for _, slow := range []float64{0, 100, 5} { // a machine that is slow meanwhile
		pairs = append(pairs, startup.Pair{Without: sample(100+slow, 0), With: sample(150+slow, 2)})
	}
	text, figure := render(startup.Run{Runtime: "containerd://2.4", Nodes: []startup.Node{
		{Pairs: pairs, IdleShare: 0.05}, {Pods: 250, Pairs: pairs, IdleShare: 0.2},
	}}, host.Machine{})
	for _, want := range []string{
		"| **the whole start** | 505 (502 to 552) | 555 (552 to 602) | 50 (50 to 50) |", "| sandbox | 300 (300 to 300) |", "| processes (hooks) | 0 | 2 |",
		"few pods | ≤ 0.08 | 0.05 | **met** |", "250 other pods | ≤ 0.08 | 0.2 | **missed** |", "containerd 2.4",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if rows := strings.Count(figure, "a claim</text>") + strings.Count(figure, "no claim</text>"); rows != 4 {
		t.Errorf("the figure has %d rows:\n%s", rows, figure)
	}
}
