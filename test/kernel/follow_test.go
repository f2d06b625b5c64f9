package kernel

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParsePeriods(t *testing.T) {
	got, err := parsePeriods("10.00 4-7 1 root\n12.50 0-15 1 root invalid (x)\n12.75 4-7 1 root\n13.75 end\n")
	want := []Period{
		{"4-7 1 root", 2500 * time.Millisecond},
		{"0-15 1 root invalid (x)", 250 * time.Millisecond},
		{"4-7 1 root", time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("parsePeriods (-want +got), %v:\n%s", err, diff)
	}
	for _, damaged := range []string{"x 4-7 1 root\n", "10.00\n", "\n"} {
		if periods, err := parsePeriods(damaged); err == nil {
			t.Errorf("parsePeriods(%q) = %v, want an error", damaged, periods)
		}
	}
}
