package monitoring

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
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

// recorded returns the recordings by what is wrong.
func recorded(t *testing.T) map[string]recording {
	t.Helper()
	if *recordings == "" {
		t.Skip("no -scrapes: make e2e-alerts records them")
	}
	names, err := filepath.Glob(filepath.Join(*recordings, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no recordings: %v", *recordings, err)
	}
	all := make(map[string]recording)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var one recording
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), ".json")] = one
	}
	return all
}

// Each fault of a real node fires its alert and no other one.
func TestFaultsOfANode(t *testing.T) {
	recordings := recorded(t)
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	quick := filepath.Join(t.TempDir(), "alerts.yaml")
	if err := os.WriteFile(quick, regexp.MustCompile(`(?m)for: [1-9]\w*$`).ReplaceAll(text, []byte("for: "+faultLasts)), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := namesOfAlerts(string(text))
	for name, recorded := range recordings {
		t.Run(name, func(t *testing.T) {
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

// elsewhere begin the names of metrics that the recorded node does not send: it has no caches
// to divide, and publishes no PCI functions.
var elsewhere = []string{"dra_numa_cache_", "dra_numa_claim_cache_", "dra_numa_claim_pci_", "dra_numa_pci_"}

// Each panel has numbers from a real node, at some time, with nothing wrong or one of the
// faults.
func TestPanelsOfANode(t *testing.T) {
	if *some {
		t.Skip("-some: the recordings that a panel needs may be missing")
	}
	type asked struct {
		ask    func(query string, after time.Duration) (promql.Vector, error)
		chosen map[string]string
		steps  int
	}
	var nodes []asked
	for _, one := range recorded(t) {
		all := one.series()
		nodes = append(nodes, asked{engine(t, scrapePeriod, all), map[string]string{
			"node": "node-1", "namespace": namespaceOf(all), "claim": ".*", "__rate_interval": "1m",
		}, len(one.Scrapes)})
	}
	for file, text := range texts(t) {
		board := mustDecode(t, text)
		queries(t, board, func(title, query string) {
			found := false
			for _, node := range nodes {
				for step := node.steps - 1; step > 0 && !found; step -= 5 {
					vector, err := node.ask(replaced(t, board, query, node.chosen), time.Duration(step)*scrapePeriod)
					if err != nil {
						t.Fatalf("%s: %s: %v", file, title, err)
					}
					found = hasNumbers(vector)
				}
			}
			if found == isElsewhere(query) {
				t.Errorf("%s: %s: numbers: %t, want %t, for %s", file, title, found, !found, query)
			}
		})
	}
}

var metricName = regexp.MustCompile(`\b(dra_numa|process)_\w+`)

// isElsewhere is whether the recorded node sends none of the metrics of a query.
func isElsewhere(query string) bool {
	return !slices.ContainsFunc(metricName.FindAllString(query, -1), func(name string) bool {
		return !slices.ContainsFunc(elsewhere, func(begin string) bool { return strings.HasPrefix(name, begin) })
	})
}

var claimNamespace = regexp.MustCompile(`^dra_numa_claim_cpus\{.*\bnamespace="([^"]+)"`)

// namespaceOf returns the namespace of the claims; each spec has one of its own.
func namespaceOf(all series) string {
	for name := range all {
		if parts := claimNamespace.FindStringSubmatch(name); parts != nil {
			return parts[1]
		}
	}
	return "none"
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
				name := ofJob(on("node-1", line[:i]))
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
		add(step, ofJob(on("node-1", "up")), up)
		last = now
	}
	return all
}

// A node that stops to answer is down, and what it last sent counts no more.
func TestSeriesOfARecording(t *testing.T) {
	got := recording{Scrapes: []string{"# HELP a b\na 1\n", "a 2\nb{c=\"d\"} 3\n", "", "a 4\n"}}.series()
	want := series{
		`a{job="` + job + `",node="node-1"}`:       "1 2 stale 4",
		`b{job="` + job + `",node="node-1",c="d"}`: "_ 3 stale",
		`up{job="` + job + `",node="node-1"}`:      "1 1 0 1",
	}
	if !maps.Equal(got, want) {
		t.Errorf("series %q, want %q", got, want)
	}
}
