package monitoring

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/teststorage"
	"go.yaml.in/yaml/v2"
)

// rendered is the chart with a PodMonitor, as the tests of the chart keep it.
const rendered = "../chart/testdata/every-value.yaml"

// podMonitor has the fields of a PodMonitor that decide what Prometheus keeps of a scrape.
type podMonitor struct {
	Kind string
	Spec struct {
		PodMetricsEndpoints []struct {
			HonorLabels       bool               `yaml:"honorLabels"`
			MetricRelabelings []metricRelabeling `yaml:"metricRelabelings"`
		} `yaml:"podMetricsEndpoints"`
	}
}

type metricRelabeling struct {
	Action       string
	SourceLabels []string `yaml:"sourceLabels"`
	Regex        string
	TargetLabel  string `yaml:"targetLabel"`
}

// scrapeConfig returns the chart's PodMonitor as the configuration of Prometheus that the
// operator makes of it.
func scrapeConfig(t *testing.T) *config.Config {
	t.Helper()
	text, err := os.ReadFile(rendered)
	if err != nil {
		t.Fatal(err)
	}
	var monitor podMonitor
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var object podMonitor
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		if object.Kind == "PodMonitor" {
			monitor = object
		}
	}
	if len(monitor.Spec.PodMetricsEndpoints) != 1 {
		t.Fatalf("%s has PodMonitor %+v", rendered, monitor)
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	out := strings.Builder{}
	fmt.Fprintf(&out, "scrape_configs:\n- {job_name: test, scrape_interval: 1s, scrape_timeout: 1s, honor_labels: %t}\n", endpoint.HonorLabels)
	made, err := config.Load(out.String(), promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Builder{}
	for _, r := range endpoint.MetricRelabelings {
		line, err := yaml.Marshal([]map[string]any{present(map[string]any{
			"action": r.Action, "source_labels": r.SourceLabels, "regex": r.Regex, "target_label": r.TargetLabel,
		})})
		if err != nil {
			t.Fatal(err)
		}
		rules.Write(line)
	}
	if err := yaml.UnmarshalStrict([]byte(rules.String()), &made.ScrapeConfigs[0].MetricRelabelConfigs); err != nil {
		t.Fatal(err)
	}
	for _, r := range made.ScrapeConfigs[0].MetricRelabelConfigs {
		if err := r.Validate(model.UTF8Validation); err != nil {
			t.Fatal(err)
		}
		r.NameValidationScheme = model.UTF8Validation
	}
	return made
}

// present returns the fields that have a value: an absent one has Prometheus' default.
func present(fields map[string]any) map[string]any {
	for name, value := range fields {
		if list, ok := value.([]string); value == "" || ok && len(list) == 0 {
			delete(fields, name)
		}
	}
	return fields
}

// target are the labels that Prometheus gives to what a daemon sends.
var target = map[string]string{
	"job": job, "instance": "10.0.0.1:8090", "node": "node-1", "namespace": "dra-numa", "pod": "dra-driver-numa-x", "container": "driver", "endpoint": "metrics",
}

// stored scrapes a daemon that sends the text, and returns what Prometheus stores of it.
func stored(t *testing.T, text string) (all []labels.Labels) {
	t.Helper()
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, text)
	}))
	t.Cleanup(daemon.Close)
	storage := teststorage.New(t)
	manager, err := scrape.NewManager(&scrape.Options{DiscoveryReloadInterval: model.Duration(time.Millisecond)}, promslog.NewNopLogger(), nil, storage, nil, prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.ApplyConfig(scrapeConfig(t)); err != nil {
		t.Fatal(err)
	}
	found := model.LabelSet{"__address__": model.LabelValue(strings.TrimPrefix(daemon.URL, "http://"))}
	for name, value := range target {
		found[model.LabelName(name)] = model.LabelValue(value)
	}
	targets := make(chan map[string][]*targetgroup.Group, 1)
	targets <- map[string][]*targetgroup.Group{"test": {{Source: "test", Targets: []model.LabelSet{found}}}}
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(targets) }()
	defer func() {
		manager.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if all = labelSets(t, storage); len(all) > 0 {
			return all
		}
	}
	t.Fatal("Prometheus stores nothing")
	return nil
}

// labelSets returns the labels of all series of which a storage gives samples: it gives those of a scrape all at once,
// but has the series themselves while it still stores the rest.
func labelSets(t *testing.T, storage *teststorage.TestStorage) (all []labels.Labels) {
	t.Helper()
	querier, err := storage.Querier(0, time.Now().Add(time.Hour).UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	defer querier.Close()
	set := querier.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchNotEqual, model.MetricNameLabel, ""))
	for set.Next() {
		if set.At().Iterator(nil).Next() != chunkenc.ValNone {
			all = append(all, set.At().Labels())
		}
	}
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Whoever takes a daemon over sends what it likes: other jobs, other nodes, metrics of others.
func TestPrometheusStoresOnlyWhatADaemonMaySay(t *testing.T) {
	text, err := os.ReadFile(scrapes + "metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			want++
		}
	}
	hostile := strings.Join([]string{
		`kube_pod_info{namespace="team"} 1`, `up{job="kubelet"} 0`, `ALERTS{alertname="X"} 1`, `dra_numa_ready{job="kubelet"} 1`,
		`dra_numa_ready{node="node-2",instance="10.0.0.2:8090"} 0`, `dra_numa_ready{pod="other",container="c",endpoint="e"} 0`,
		`dra_numa_ready{exported_job="kubelet",exported_namespace="team",exported_exported_node="node-2"} 0`, `process_start_time_seconds 1`, `xdra_numa_ready 1`,
	}, "\n") + "\n"
	names, claims := map[string]int{}, 0
	all := stored(t, string(text)+hostile)
	for _, one := range all {
		name := one.Get(model.MetricNameLabel)
		if strings.HasPrefix(name, "scrape_") || name == "up" { // of Prometheus itself
			if one.Get("job") != job {
				t.Errorf("stored is %s", one)
			}
			continue
		}
		names[name]++
		for label, value := range target {
			if got := one.Get(label); got != value && (label != "namespace" || !strings.HasPrefix(name, "dra_numa_")) {
				t.Errorf("stored is %s, whose label %s is %q", one, label, got)
			}
		}
		one.Range(func(l labels.Label) {
			if strings.HasPrefix(l.Name, "exported_") {
				t.Errorf("stored is %s", one)
			}
		})
		// The namespace of a claim, as in the metrics of kube-state-metrics.
		if one.Get("resourceclaim") != "" {
			claims++
			if one.Get("namespace") != "default" {
				t.Errorf("stored is %s", one)
			}
		}
	}
	if claims == 0 || names["dra_numa_ready"] == 0 || names["process_cpu_seconds_total"] != 1 || names["process_resident_memory_bytes"] != 1 {
		t.Errorf("of %d series, Prometheus has stored %v, %d of claims", want, names, claims)
	}
	for _, none := range []string{"kube_pod_info", "ALERTS", "process_start_time_seconds", "xdra_numa_ready"} {
		if names[none] > 0 {
			t.Errorf("Prometheus has stored %s", none)
		}
	}
	// Nothing that the daemon itself sends is lost.
	honest := 0
	for _, one := range stored(t, string(text)) {
		if name := one.Get(model.MetricNameLabel); name != "up" && !strings.HasPrefix(name, "scrape_") {
			honest++
		}
	}
	if honest != want {
		t.Errorf("of %d series, Prometheus has stored %d", want, honest)
	}
}
