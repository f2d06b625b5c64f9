package live

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metrics = `# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 1041
# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1
kubernetes_feature_enabled{name="DRAConsumableCapacity",stage="BETA"} 1
kubernetes_feature_enabled{name="DRAListTypeAttributes",stage="ALPHA"} 0
`

func TestGatesAreThoseOfTheMetrics(t *testing.T) {
	want := map[string]bool{"DRAAdminAccess": true, "DRAConsumableCapacity": true, "DRAListTypeAttributes": false}
	for _, text := range []string{metrics, metrics + "process_open_fds 7\nnot a metric", strings.TrimSuffix(metrics, "\n")} {
		got, err := parseGates(strings.NewReader(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("error %v, gates (-want +got):\n%s", err, diff)
		}
	}
	for text, want := range map[string]string{
		"":                  "the metrics have no kubernetes_feature_enabled",
		"go_goroutines 7\n": "the metrics have no kubernetes_feature_enabled",
		`kubernetes_feature_enabled{name="X",stage=""} 2` + "\n": `metric "kubernetes_feature_enabled{name=\"X\",stage=\"\"} 2": want kubernetes_feature_enabled{name="NAME",stage="STAGE"} 0 or 1`,
		`kubernetes_feature_enabled{stage=""} 1` + "\n":          `metric "kubernetes_feature_enabled{stage=\"\"} 1": want`,
	} {
		if _, err := parseGates(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func FuzzGatesNeverPanic(f *testing.F) {
	f.Add(metrics)
	f.Add(`kubernetes_feature_enabled{} 1`)
	f.Fuzz(func(t *testing.T, text string) {
		if gates, err := parseGates(strings.NewReader(text)); (gates == nil) == (err == nil) {
			t.Errorf("gates %v and error %v", gates, err)
		}
	})
}
