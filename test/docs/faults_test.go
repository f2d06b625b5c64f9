package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// What is wrong is written on the page; where it is said is in the table of the code.
func TestPageHasTheTableOfFaults(t *testing.T) {
	const path, head = root + "/docs/monitoring.md", "| fault | what is wrong | taint | health | condition | events | metrics |\n|---|---|---|---|---|---|---|\n"
	before, rest, _ := strings.Cut(files.Read(t, path), head)
	table, after, _ := strings.Cut(rest, "\n\n")
	means := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n"), " | ")
		means[strings.TrimSpace(cells[0])] = cells[1]
	}
	var lines []string
	for _, fault := range deviceclasses.Faults() {
		metrics := []string{metric(fault.Metric)}
		if fault.Taints {
			metrics = append(metrics, metric("device_taint"))
		}
		name := quoted(fault.Name)
		if means[name] == "" {
			t.Errorf("%s does not say what is wrong if %s", path, name)
		}
		cells := []string{name, means[name], yes(fault.Taints), yes(fault.Health != ""), quoted(fault.Condition, fault.Reason), quoted(fault.Event, fault.EventOver), quoted(metrics...)}
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	files.Golden(t, path, before+head+strings.Join(lines, "\n")+"\n\n"+after)
}

func metric(name string) string {
	if name == "" {
		return ""
	}
	return "dra_numa_" + name
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "–"
}

// quoted joins the words that are not empty.
func quoted(words ...string) string {
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	if len(words) == 0 {
		return "–"
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// Alert rules and their tests name taints that there are.
func TestTaintsOfAlertsAreOfTheTable(t *testing.T) {
	named := 0
	for _, path := range []string{chart + "monitoring/alerts.yaml", root + "/test/monitoring/alerts_test.go"} {
		for _, value := range regexp.MustCompile(`taint\{(?:.*,)?value!?="([^"]+)"`).FindAllStringSubmatch(files.Read(t, path), -1) {
			named++
			if !deviceclasses.FaultOf(value[1]).Taints {
				t.Errorf("%s names the taint %q, which no fault has", path, value[1])
			}
		}
	}
	if named < 3 {
		t.Errorf("only %d taints are named", named)
	}
}
