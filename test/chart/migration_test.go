package chart

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/migration"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The chart takes the values that kubectl numa migrate writes.
func TestChartTakesTheValuesOfAMigration(t *testing.T) {
	inputs, err := filepath.Glob("../../cluster/migration/testdata/*.*ml")
	if err != nil || len(inputs) < 3 {
		t.Fatal(inputs, err)
	}
	for _, input := range inputs {
		sources, err := migration.Read(input, strings.NewReader(files.Read(t, input)))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := migration.Make(sources)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range plan.Files {
			if f.Name != "values.yaml" {
				continue
			}
			path := filepath.Join(t.TempDir(), f.Name)
			files.Write(t, path, known(t, f.Text))
			out, stderr, err := template(t, "--values", path)
			if err != nil {
				t.Errorf("%s: %s", input, stderr)
			}
			var values struct {
				Config any `json:"config"`
			}
			if err := yaml.Unmarshal([]byte(f.Text), &values); err != nil || values.Config != nil && !strings.Contains(out, "kind: NodeConfig") {
				t.Errorf("%s: %v, and no NodeConfig in\n%s", input, err, out)
			}
		}
	}
}

// known returns values without webhook.translate, if this chart does not have it.
func known(t *testing.T, text string) string {
	t.Helper()
	var schema struct {
		Properties struct {
			Webhook struct{ Properties map[string]any }
		}
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(files.Read(t, "../../deployments/helm/dra-driver-numa/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	if webhook, has := values["webhook"].(map[string]any); has && schema.Properties.Webhook.Properties["translate"] == nil {
		delete(webhook, "translate")
	}
	left, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(left)
}
