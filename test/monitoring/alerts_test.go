// Package monitoring tests the chart's alert rules and dashboards with Prometheus' own
// packages and Grafana's schema, on the metrics that the daemon sends.
package monitoring

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const (
	alertsFile = "../../deployments/helm/dra-driver-numa/monitoring/alerts.yaml"
	scrapes    = "../../kubeletplugin/metrics/testdata/" // golden files of the exporter
	job        = "dra-driver-numa"                       // as the chart's PodMonitor makes it
	minutes    = 60
)

// series are values by name and labels, as in "load" of promqltest.
type series map[string]string

// scraped returns the series of a golden scrape, each with a constant value.
func scraped(t *testing.T, file string) series {
	t.Helper()
	text, err := os.ReadFile(scrapes + file)
	if err != nil {
		t.Fatal(err)
	}
	all := series{}
	for line := range strings.Lines(string(text)) {
		if i := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") {
			all[line[:i]] = fmt.Sprintf("%sx%d", strings.TrimSpace(line[i+1:]), minutes)
		}
	}
	return all
}

// on adds the label that the PodMonitor adds.
func on(node, name string) string {
	if !strings.Contains(name, "{") {
		return fmt.Sprintf("%s{node=%q}", name, node)
	}
	return strings.Replace(name, "{", fmt.Sprintf("{node=%q,", node), 1)
}

// fired returns the alerts of a file that fired at some step, with their summaries.
func fired(t *testing.T, file string, step time.Duration, steps int, all series) map[string]string {
	t.Helper()
	load := strings.Builder{}
	fmt.Fprintf(&load, "load %s\n", step)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&load, "  %s %s\n", name, all[name])
	}
	storage := promqltest.LoadedStorage(t, load.String())
	engine := promqltest.NewTestEngine(t, false, 0, 100_000)
	manager := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation,
		QueryFunc:            rules.EngineQueryFunc(engine, storage),
		AppendableV2:         storage, Queryable: storage, Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, file)
	for _, err := range errs {
		t.Fatal(err)
	}
	firing := map[string]string{}
	for i := range steps {
		for _, group := range groups {
			group.Eval(t.Context(), time.Unix(0, 0).Add(time.Duration(i)*step))
			for _, rule := range group.Rules() {
				if err := rule.LastError(); err != nil {
					t.Fatalf("%s: %v", rule.Name(), err)
				}
				for _, alert := range rule.(*rules.AlertingRule).ActiveAlerts() {
					if alert.State == rules.StateFiring {
						firing[rule.Name()] = alert.Annotations.Get("summary")
					}
				}
			}
		}
	}
	return firing
}

// faults are what the metrics of a node are when one thing is wrong, and the alert for it.
var faults = []struct {
	name, alert, summary string
	changed              series
}{
	{"nothing", "", "", nil},
	{"the daemon waits for another one", "", "", series{"dra_numa_ready": "0x60", `dra_numa_not_ready{reason="standby"}`: "1x60"}},
	{"the daemon restarts now and then", "", "", series{"up": "1x8 0x2 1x20 0x2 1x30", `dra_numa_not_ready{reason="starting"}`: "_x8 1x2 _x50"}},
	{"some claims fail", "", "", series{`dra_numa_claim_operation_duration_seconds_count{operation="prepare",result="error"}`: "0x20 3x40"}},
	{"the keeper repairs once", "", "", series{`dra_numa_keeper_repairs_total{cause="partition"}`: "0x20 1x40"}},
	{"the daemon is away", "NUMADriverDown", "The daemon on node node-1 does not answer.", series{"up": "0x60"}},
	{
		"the API server does not store slices", "NUMADriverNotReady", "The daemon on node node-1 is not ready (api-server).",
		series{"dra_numa_ready": "0x60", `dra_numa_not_ready{reason="api-server"}`: "1x60"},
	},
	{
		"a feature gate is off", "NUMADriverNotReady", "The daemon on node node-1 is not ready (dropped-field).",
		series{"dra_numa_ready": "0x60", `dra_numa_not_ready{reason="dropped-field"}`: "1x60"},
	},
	{
		"the kubelet does not register the driver", "NUMADriverNotReady", "The daemon on node node-1 is not ready (kubelet).",
		series{"dra_numa_ready": "0x60", "dra_numa_kubelet_registered": "0x60", `dra_numa_not_ready{reason="kubelet"}`: "1x60"},
	},
	{
		"the kubelet's CPU manager is static", "NUMADriverConflict", "Something else gives out the CPUs of node node-1 (kubelet-manager).",
		series{"dra_numa_ready": "0x60", `dra_numa_not_ready{reason="kubelet-manager"}`: "1x60"},
	},
	{
		"another driver", "NUMADriverConflict", "Something else gives out the CPUs of node node-1 (other-driver).",
		series{"dra_numa_ready": "0x60", `dra_numa_not_ready{reason="other-driver"}`: "1x60"},
	},
	{
		"the keeper hangs", "NUMAKeeperSilent", "The keeper on node node-1 does not work.",
		series{"dra_numa_ready": "0x60", `dra_numa_not_ready{reason="keeper"}`: "1x60"},
	},
	{
		"a partition is not honoured", "NUMAClaimFaulty", "Claim default/b on node node-1 does not have what it holds.",
		series{
			`dra_numa_claim_faulty{namespace="default",resourceclaim="b"}`: "1x60", `dra_numa_cgroups{state="faulty"}`: "1x60", "dra_numa_keeper_unrepaired_cgroups": "1x60",
			`dra_numa_device_taint{device="numa-2",effect="NoSchedule",key="dra.numa/fault",value="partition-invalid"}`: "1x60",
		},
	},
	{
		"a GPU is unhealthy", "NUMADeviceTainted", "Device gpu-0000-18-00-0 on node node-1 takes no new claims (unhealthy).",
		series{`dra_numa_device_taint{device="gpu-0000-18-00-0",effect="NoSchedule",key="dra.numa/fault",value="unhealthy"}`: "1x60"},
	},
	{
		"resctrl is not mounted", "NUMASettingUnmet", "Node node-1 does not do what its NodeConfig says in cache.",
		series{`dra_numa_setting_unmet{setting="cache"}`: "1x60"},
	},
	{
		"publishing is paused", "NUMAPublishingPaused", "Publishing of node node-1 is paused.",
		series{"dra_numa_publishing_paused": "1x60"},
	},
	{"it is, for a few minutes", "", "", series{"dra_numa_publishing_paused": "0x20 1x20 0x20"}},
	{
		"claims are on one zone", "NUMAZonesUneven", "The claims of node node-1 are on few of its zones, although its zoneOrder is spread.",
		series{`dra_numa_zone_imbalance{order="spread"}`: "0.9x60", `dra_numa_claim_cpus{device="numa-0",namespace="namespace-of-a-tenant",resourceclaim="claim-of-a-pod-0000"}`: "1x60"},
	},
	{"they are, as the scheduler fills zones", "", "", series{`dra_numa_zone_imbalance{order="static"}`: "0.9x60"}},
	{"one claim has all of a zone", "", "", series{`dra_numa_zone_imbalance{order="spread"}`: "1x60"}},
	{
		"another program writes to cgroups", "NUMARepairsRepeat", "Another program keeps changing cgroups of claims on node node-1 (cpus).",
		series{`dra_numa_keeper_repairs_total{cause="cpus"}`: "0+1x60"},
	},
	{
		"a CDI spec is gone", "NUMARecordsDiffer", "The files of node node-1 differ from what its claims hold (missing_spec).",
		series{`dra_numa_record_mismatches{record="missing_spec"}`: "1x60"},
	},
	{
		"it is, and scrapes meet operations", "NUMARecordsDiffer", "The files of node node-1 differ from what its claims hold (missing_spec).",
		series{`dra_numa_record_mismatches{record="missing_spec"}`: strings.Repeat("1x3 stale ", 12)},
	},
	{"it was for a moment", "", "", series{`dra_numa_record_mismatches{record="missing_spec"}`: "0x20 1x2 0x36"}},
	{
		"claims are refused", "NUMAPrepareFails", "The daemon on node node-1 repeatedly fails to prepare claims.",
		series{`dra_numa_claim_operation_duration_seconds_count{operation="prepare",result="error"}`: "0+1x60"},
	},
	{
		"a disk is slow", "NUMADiskSlow", "The disk of node node-1 takes more than a second to write the checkpoint.",
		slowDisk(),
	},
	{
		"NRI is off in the runtime", "NUMARuntimeDisconnected", "The container runtime of node node-1 does not do what the driver asks over NRI.",
		series{"dra_numa_nri_connected": "0x60"},
	},
	{
		"the runtime refuses", "NUMARuntimeDisconnected", "The container runtime of node node-1 does not do what the driver asks over NRI.",
		series{"dra_numa_nri_refused": "1x60"},
	},
}

// slowDisk has one sync of 2 s each minute.
func slowDisk() series {
	changed := series{}
	for _, bound := range []string{"2.5", "5", "10", "30", "60", "+Inf"} {
		changed[fmt.Sprintf("dra_numa_fsync_duration_seconds_bucket{file=\"checkpoint\",le=%q}", bound)] = "0+1x60"
	}
	return changed
}

// Each fault fires its alert and no other one, and what is no fault fires none.
func TestEachFaultFiresItsAlert(t *testing.T) {
	healthy, sent := scraped(t, "healthy.txt"), scraped(t, "metrics.txt")
	names := map[string]bool{"up": true}
	for _, all := range []series{healthy, sent} {
		for name := range all {
			name, _, _ = strings.Cut(name, "{")
			names[name] = true
		}
	}
	alerts := map[string]bool{}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			all := series{}
			for name, values := range healthy {
				if strings.HasPrefix(name, "dra_numa_not_ready{") {
					t.Fatalf("the node without faults has %s", name)
				}
				all[on("node-1", name)], all[on("node-2", name)] = values, values
			}
			up := fmt.Sprintf("up{job=%q}", job)
			all[on("node-1", up)], all[on("node-2", up)] = "1x60", "1x60"
			for name, values := range fault.changed {
				metric, _, _ := strings.Cut(name, "{")
				if !names[metric] {
					t.Errorf("the daemon sends no %s", metric)
				}
				if name == "up" {
					name = up
				}
				all[on("node-1", name)] = values
			}
			got := fired(t, alertsFile, time.Minute, minutes, all)
			want := map[string]string{}
			if fault.alert != "" {
				want[fault.alert] = fault.summary
			}
			if !maps.Equal(got, want) {
				t.Errorf("alerts %q, want %q", got, want)
			}
			alerts[fault.alert] = true
		})
	}
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range namesOfAlerts(string(text)) {
		if !alerts[alert] {
			t.Errorf("no fault fires %s", alert)
		}
		if anchor := fmt.Sprintf(`<a id="%s"></a>`, strings.ToLower(alert)); !strings.Contains(string(page), "\n| "+anchor+"`"+alert+"` | ") {
			t.Errorf("docs/monitoring.md lacks %s", alert)
		}
	}
}

// namesOfAlerts returns the names in the text of a file of rules.
func namesOfAlerts(text string) (names []string) {
	for _, alert := range regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, alert[1])
	}
	return names
}
