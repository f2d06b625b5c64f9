package monitoring

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	grafana "github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

const dashboards = "../../deployments/helm/dra-driver-numa/monitoring/dashboards/"

// classic is the format that the sidecar loads, and every Grafana reads. The newer one is
// for Grafana 12 and later.
type classic = dashboard.Dashboard //nolint:staticcheck // see above

// chosen are the values of variables, as Grafana puts them into queries. The claims are
// those of the driver's golden checkpoint: together they hold devices of all kinds.
var chosen = map[string]string{"node": "node-1", "namespace": "default", "claim": "(a|b|c|d)", "__rate_interval": "5m"}

var variable = regexp.MustCompile(`\$(\w+)`)

// texts returns the dashboards of the chart by file name.
func texts(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(dashboards + "*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// decode decodes a dashboard as Grafana's schema says. A field that the schema lacks is an
// error, also in fieldConfig, where the generated code lets it pass.
func decode(text []byte) (board classic, err error) {
	plugins.RegisterDefaultPlugins()
	// It finds mistakes, but leaves out the panels: see found.
	if err := found(new(classic).UnmarshalJSONStrict(text)); err != nil {
		return board, err
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return board, err
	}
	var raw struct {
		Panels []struct{ FieldConfig json.RawMessage }
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return board, err
	}
	for i, panel := range raw.Panels {
		var config dashboard.FieldConfigSource
		if err := found(config.UnmarshalJSONStrict(panel.FieldConfig)); err != nil {
			return board, fmt.Errorf("panels[%d].fieldConfig: %w", i, err)
		}
	}
	return board, found(board.Validate())
}

// found is nil for an empty list of errors, which the generated code returns as an error.
func found(err error) error {
	var list cog.BuildErrors
	if errors.As(err, &list) && len(list) == 0 {
		return nil
	}
	return err
}

func mustDecode(t *testing.T, text []byte) classic {
	t.Helper()
	board, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return board
}

func TestDashboardsAreAsGrafanasSchemaSays(t *testing.T) {
	uids := map[string]bool{}
	for file, text := range texts(t) {
		board := mustDecode(t, text)
		if board.Uid == nil || uids[*board.Uid] || *board.Uid != "dra-numa-"+strings.TrimSuffix(file, ".json") {
			t.Errorf("%s: uid %q", file, text[:60])
			continue
		}
		uids[*board.Uid] = true
		ids, cells := map[uint32]string{}, map[[2]uint32]string{}
		for _, entry := range board.Panels {
			title, id, at := "", uint32(0), dashboard.GridPos{}
			if row := entry.RowPanel; row != nil {
				title, id, at = *row.Title, row.Id, *row.GridPos
			} else {
				panel := entry.Panel
				title, id, at = *panel.Title, *panel.Id, *panel.GridPos
				if _, known := cog.ConfigForPanelcfgVariant(panel.Type); !known {
					t.Errorf("%s: %s: the schema has no panels of type %q", file, title, panel.Type)
				}
			}
			if other, taken := ids[id]; taken {
				t.Errorf("%s: %s and %s have the id %d", file, title, other, id)
			}
			ids[id] = title
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other, taken := cells[[2]uint32{x, y}]; taken || x >= 24 {
						t.Fatalf("%s: %s is at %d,%d, where %q or the margin is", file, title, x, y, other)
					}
					cells[[2]uint32{x, y}] = title
				}
			}
		}
	}
}

// The tests above can fail: each row makes a dashboard wrong.
func TestWrongDashboardsAreRefused(t *testing.T) {
	text := string(texts(t)["node.json"])
	for _, row := range []struct{ old, wrong string }{
		{`"schemaVersion"`, `"schema"`},
		{`"legendFormat"`, `"legend"`},
		{`"graphMode": "none"`, `"graphMode": "none", "graph": 1`},
		{`"showPoints"`, `"points"`},
		{`"noValue"`, `"novalue"`},
		{`"gridPos": {"h": 4`, `"gridPos": {"h": "4"`},
		{`"refresh": 2`, `"refreshes": 2`},
	} {
		wrong := strings.Replace(text, row.old, row.wrong, 1)
		if wrong == text {
			t.Errorf("the dashboard has no %s", row.old)
		}
		if _, err := decode([]byte(wrong)); err == nil {
			t.Errorf("%s instead of %s is no error", row.wrong, row.old)
		}
	}
}

// ofJob adds the other label that Prometheus adds.
func ofJob(name string) string { return strings.Replace(name, "{", fmt.Sprintf("{job=%q,", job), 1) }

// running returns the series of a golden scrape while the node works: counters grow by one
// a minute, also those of histograms.
func running(t *testing.T, file, node string) series {
	t.Helper()
	text, err := os.ReadFile(scrapes + file)
	if err != nil {
		t.Fatal(err)
	}
	all, step := series{}, 0
	for line := range strings.Lines(string(text)) {
		if kind, found := strings.CutPrefix(line, "# TYPE "); found {
			step = 1
			if strings.HasSuffix(kind, " gauge\n") {
				step = 0
			}
		}
		if i := strings.LastIndexByte(line, ' '); !strings.HasPrefix(line, "#") {
			all[ofJob(on(node, line[:i]))] = fmt.Sprintf("%s+%dx%d", strings.TrimSpace(line[i+1:]), step, minutes)
		}
	}
	return all
}

// loaded returns a query engine over a node with all kinds of devices and faults, and one
// without faults.
func loaded(t *testing.T) func(query string) (promql.Vector, error) {
	t.Helper()
	ask := engine(t, time.Minute, running(t, "metrics.txt", "node-1"), running(t, "healthy.txt", "node-2"))
	return func(query string) (promql.Vector, error) { return ask(query, minutes/2*time.Minute) }
}

// engine returns a query engine over series with a value at each step. A query is as of some
// time after the first.
func engine(t *testing.T, step time.Duration, list ...series) func(query string, after time.Duration) (promql.Vector, error) {
	t.Helper()
	load := strings.Builder{}
	fmt.Fprintf(&load, "load %s\n", step)
	for _, all := range list {
		for name, values := range all {
			fmt.Fprintf(&load, "  %s %s\n", name, values)
		}
	}
	storage, engine := promqltest.LoadedStorage(t, load.String()), promqltest.NewTestEngine(t, false, 0, 100_000)
	return func(text string, after time.Duration) (promql.Vector, error) {
		query, err := engine.NewInstantQuery(t.Context(), storage, nil, text, time.Unix(0, 0).Add(after))
		if err != nil {
			return nil, err
		}
		defer query.Close()
		result := query.Exec(t.Context())
		if result.Err != nil {
			return nil, result.Err
		}
		vector, err := result.Vector()
		return slices.Clone(vector), err
	}
}

// replaced puts values into the variables of a query.
func replaced(t *testing.T, board classic, query string, chosen map[string]string) string {
	t.Helper()
	return variable.ReplaceAllStringFunc(query, func(name string) string {
		name = name[1:]
		defined := strings.HasPrefix(name, "__") || slices.ContainsFunc(board.Templating.List, func(v dashboard.VariableModel) bool { return v.Name == name })
		if chosen[name] == "" || !defined {
			t.Errorf("no variable $%s for %s", name, query)
		}
		return chosen[name]
	})
}

// queries calls visit for each query of a panel.
func queries(t *testing.T, board classic, visit func(title, query string)) {
	t.Helper()
	for _, entry := range board.Panels {
		if entry.Panel == nil {
			continue
		}
		if len(entry.Panel.Targets) == 0 {
			t.Errorf("panel %s has no query", *entry.Panel.Title)
		}
		for _, target := range entry.Panel.Targets {
			query, ok := target.(*grafana.Dataquery)
			if !ok || query.Datasource == nil { // without it, no query is decoded strictly
				t.Fatalf("panel %s has a query of type %T, or one without a data source", *entry.Panel.Title, target)
			}
			visit(*entry.Panel.Title, query.Expr)
		}
	}
}

// Each query of a panel gets numbers from a node that works, and from the metrics of the
// daemon only.
func TestEveryPanelHasNumbers(t *testing.T) {
	ask := loaded(t)
	sent := running(t, "metrics.txt", "node-1")
	for file, text := range texts(t) {
		board := mustDecode(t, text)
		queries(t, board, func(title, query string) {
			query = replaced(t, board, query, chosen)
			expression, err := parser.NewParser(parser.Options{}).ParseExpr(query)
			if err != nil {
				t.Errorf("%s: %s: %v", file, title, err)
				return
			}
			parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
				if selector, ok := node.(*parser.VectorSelector); ok && !sends(sent, selector.Name) {
					t.Errorf("%s: %s: the daemon sends no %s", file, title, cmp.Or(selector.Name, selector.String()))
				}
				return nil
			})
			vector, err := ask(query)
			if err != nil {
				t.Errorf("%s: %s: %v", file, title, err)
			}
			if !hasNumbers(vector) {
				t.Errorf("%s: %s: no numbers for %s: %v", file, title, query, vector)
			}
		})
	}
}

func hasNumbers(vector promql.Vector) bool {
	return slices.ContainsFunc(vector, func(sample promql.Sample) bool { return !math.IsNaN(sample.F) && !math.IsInf(sample.F, 0) })
}

// sends is whether one of the series has the name.
func sends(sent series, name string) bool {
	for one := range sent {
		if strings.HasPrefix(one, name+"{") {
			return true
		}
	}
	return false
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// The variables offer what the test chooses.
func TestVariablesHaveValues(t *testing.T) {
	ask := loaded(t)
	for file, text := range texts(t) {
		board := mustDecode(t, text)
		for _, v := range board.Templating.List {
			if v.Type != dashboard.VariableTypeQuery {
				continue
			}
			parts := labelValues.FindStringSubmatch(*v.Query.String)
			if parts == nil {
				t.Errorf("%s: variable %s: %s", file, v.Name, *v.Query.String)
				continue
			}
			vector, err := ask(fmt.Sprintf("group by (%s) (%s)", parts[2], replaced(t, board, parts[1], chosen)))
			if err != nil {
				t.Errorf("%s: variable %s: %v", file, v.Name, err)
			}
			choice, offered := regexp.MustCompile("^("+chosen[v.Name]+")$"), false
			for _, sample := range vector {
				offered = offered || choice.MatchString(sample.Metric.Get(parts[2]))
			}
			if !offered {
				t.Errorf("%s: variable %s does not offer %s: %v", file, v.Name, chosen[v.Name], vector)
			}
		}
	}
}

// A new metric is either shown or not worth sending.
func TestEveryMetricIsOnADashboard(t *testing.T) {
	all := ""
	for _, text := range texts(t) {
		all += string(text)
	}
	golden, err := os.ReadFile(scrapes + "metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	families := regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(string(golden), -1)
	if len(families) < 40 {
		t.Fatalf("%d metrics in the golden scrape", len(families))
	}
	for _, family := range families {
		if !regexp.MustCompile(`\b` + family[1] + `(_bucket|_count)?\b`).MatchString(all) {
			t.Errorf("no dashboard shows %s", family[1])
		}
	}
}
