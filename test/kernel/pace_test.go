package kernel

import (
	"os/exec"
	"testing"
	"time"
)

func TestPaceOnlyLengthens(t *testing.T) {
	for pace, want := range map[Pace]time.Duration{0: time.Minute, 0.5: time.Minute, 1: time.Minute, 2.5: 150 * time.Second} {
		if got := pace.Of(time.Minute); got != want {
			t.Errorf("Pace(%v).Of(1m) = %s, want %s", pace, got, want)
		}
	}
}

func TestParseWork(t *testing.T) {
	if got, err := parseWork("10.25 12.50\n"); got != 2250*time.Millisecond || err != nil {
		t.Errorf("parseWork = %s, %v", got, err)
	}
	for _, damaged := range []string{"", "10.25\n", "x y\n", "12.50 12.50\n", "12.50 10.25\n"} {
		if got, err := parseWork(damaged); err == nil {
			t.Errorf("parseWork(%q) = %s, want an error", damaged, got)
		}
	}
}

// The script does what parseWork reads, on any machine with Linux.
func TestWorkSaysWhenItBeganAndEnded(t *testing.T) {
	out, err := exec.Command("/bin/sh", "-c", workScript, "observer", "20").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseWork(string(out)); err != nil {
		t.Error(err)
	}
}
