package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/templates"
)

const chart = root + "/deployments/helm/dra-driver-numa/"

// check fails the test for each match of the pattern on a page that exists does not know.
// There must be some.
func check(t *testing.T, what, pattern string, exists func(name string) bool) {
	t.Helper()
	found := 0
	for page, text := range pages(t) {
		if page == "CHANGELOG.md" { // it is also about what was
			continue
		}
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(strings.ReplaceAll(text, "\\\n", " "), -1) {
			found++
			if !exists(match[1]) {
				t.Errorf("%s: there is no %s %q", page, what, match[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("found only %d of %s", found, what)
	}
}

func TestNamedTargetsOfMakeExist(t *testing.T) {
	table := files.Read(t, root+"/test/suites/suites.yaml") // a test there compares it with the Makefile
	check(t, "target of make", "(?m)(?:^|`)make ([a-z][a-z0-9.-]*)", func(name string) bool {
		return strings.Contains(table, "\n- suite: "+name+"\n") || strings.Contains(table, "\n- target: "+name+"\n")
	})
}

// With --reuse-values, a chart with a new value is not rendered.
func TestUpgradesTakeTheDefaultsOfTheNewChart(t *testing.T) {
	check(t, "upgrade with", "helm upgrade [^\n]*--namespace dra-numa (--\\S+)", func(flag string) bool { return flag == "--reset-then-reuse-values" })
}

func TestNamedContainersExist(t *testing.T) {
	daemons := files.Read(t, chart+"templates/daemonset.yaml")
	check(t, "container", `dra-numa (?:POD|\S+/\S+) (?:--container|-c) (\w+)`, func(name string) bool {
		return strings.Contains(daemons, "        - name: "+name+"\n          image:")
	})
}

func TestNamedValuesOfTheChartExist(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(files.Read(t, chart+"values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	// kubectl numa generate has a flag of this name, too: field=value of a configuration.
	fields := append(deviceclasses.SettableFields(), "field")
	check(t, "value of the chart", `--set(?:-string)? '?([a-zA-Z.]+)`, func(name string) bool {
		if slices.Contains(fields, name) {
			return true
		}
		var at any = values
		for key := range strings.SplitSeq(name, ".") {
			group, isGroup := at.(map[string]any)
			if !isGroup {
				return false
			}
			if len(group) == 0 { // the user chooses the names below
				return true
			}
			if at, isGroup = group[key]; !isGroup {
				return false
			}
		}
		return true
	})
}

func TestNamedMetricsAndAlertsExist(t *testing.T) {
	metrics := files.Read(t, root+"/docs/monitoring.md") // a test holds its table equal to what the daemon sends
	check(t, "metric", `\b(dra_numa_[a-z_]+[a-z])\b`, func(name string) bool { return strings.Contains(metrics, "\n| `"+name+"` |") })
	alerts := files.Read(t, chart+"monitoring/alerts.yaml")
	check(t, "alert or event", "`(NUMA[A-Za-z]+)`", func(name string) bool {
		return strings.Contains(alerts, "- alert: "+name+"\n") || name == templates.Reason ||
			slices.ContainsFunc(deviceclasses.Faults(), func(fault deviceclasses.Fault) bool { return fault.Event == name || fault.EventOver == name })
	})
}

// The page of alerts names the fault of each spec of make e2e-alerts.
func TestFaultsOfAlertsAreThoseOfTheSpecs(t *testing.T) {
	page, rules := files.Read(t, root+"/docs/monitoring.md"), files.Read(t, chart+"monitoring/alerts.yaml")
	fault, alerts := "", 0
	for _, match := range regexp.MustCompile(`\bIt\("([^"]+)"|\brecord\(ctx, "(\w+)"\)`).FindAllStringSubmatch(files.Read(t, root+"/test/e2e/alerts_test.go"), -1) {
		if match[1] != "" {
			fault = match[1]
			continue
		}
		alerts++
		anchor := strings.ToLower(match[2])
		if row := `<a id="` + anchor + "\"></a>`" + match[2] + "` | " + fault + " | "; !strings.Contains(page, row) {
			t.Errorf("docs/monitoring.md lacks the row %q", row)
		}
		if url := "runbook_url: https://github.com/dra-driver-numa/dra-driver-numa/blob/main/docs/monitoring.md#" + anchor + "\n"; !strings.Contains(rules, url) {
			t.Errorf("alerts.yaml lacks %q", url)
		}
	}
	if want := strings.Count(rules, "- alert: "); alerts != want {
		t.Errorf("%d alerts have a spec, want %d", alerts, want)
	}
}
