package monitoring

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	recordings = flag.String("scrapes", "", "folder of what a broken node has sent, which make e2e-alerts records")
	some       = flag.Bool("some", false, "there need not be a recording for each alert")
)

// What a node must have been like for an alert to fire, instead of the minutes of the file: a
// fault is recorded for 100 s only. A rule without a time keeps it.
const (
	scrapePeriod = 5 * time.Second
	faultLasts   = "30s"
)

// recording is what a node sends while one thing is wrong.
type recording struct {
	Alert   string   `json:"alert"`   // the one that fires; empty: none
	Scrapes []string `json:"scrapes"` // one each scrapePeriod; empty if the daemon did not answer
}

// Each fault of a real node fires its alert and no other one.
func TestFaultsOfANode(t *testing.T) {
	if *recordings == "" {
		t.Skip("no -scrapes: make e2e-alerts records them")
	}
	names, err := filepath.Glob(filepath.Join(*recordings, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no recordings: %v", *recordings, err)
	}
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	quick := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(quick, regexp.MustCompile(`(?m)for: [1-9]\w*$`).ReplaceAll(text, []byte("for: "+faultLasts)), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := namesOfAlerts(string(text))
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var recorded recording
			if err := json.Unmarshal(text, &recorded); err != nil {
				t.Fatal(err)
			}
			var want []string
			if recorded.Alert != "" {
				want = []string{recorded.Alert}
			}
			got := fired(t, quick, scrapePeriod, len(recorded.Scrapes), recorded.series())
			if alerts := slices.Sorted(maps.Keys(got)); !slices.Equal(alerts, want) {
				t.Errorf("alerts %q, want %q", got, want)
			}
			missing = slices.DeleteFunc(missing, func(alert string) bool { return alert == recorded.Alert })
		})
	}
	if len(missing) > 0 && !*some {
		t.Errorf("no recording is for %s", strings.Join(missing, ", "))
	}
}

// series returns what Prometheus has of the scrapes: values by name and labels, and up. What
// a scrape does not have any more ends there.
func (r recording) series() series {
	all := series{}
	add := func(step int, name, value string) {
		values := strings.Fields(all[name])
		for len(values) < step {
			values = append(values, "_")
		}
		all[name] = strings.Join(append(values, value), " ")
	}
	last := map[string]bool{}
	for step, text := range r.Scrapes {
		now := map[string]bool{}
		for line := range strings.Lines(text) {
			if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
				name := on("node-1", line[:i])
				now[name] = true
				add(step, name, strings.TrimSpace(line[i+1:]))
			}
		}
		for name := range last {
			if !now[name] {
				add(step, name, "stale")
			}
		}
		up := "1"
		if text == "" {
			up = "0"
		}
		add(step, on("node-1", fmt.Sprintf("up{job=%q}", job)), up)
		last = now
	}
	return all
}

// A node that stops to answer is down, and what it last sent counts no more.
func TestSeriesOfARecording(t *testing.T) {
	got := recording{Scrapes: []string{"# HELP a b\na 1\n", "a 2\nb{c=\"d\"} 3\n", "", "a 4\n"}}.series()
	want := series{
		`a{node="node-1"}`:                    "1 2 stale 4",
		`b{node="node-1",c="d"}`:              "_ 3 stale",
		`up{node="node-1",job="` + job + `"}`: "1 1 0 1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("series %q, want %q", got, want)
	}
}
