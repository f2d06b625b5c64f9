package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestTopologyInEveryForm(t *testing.T) {
	dir := sample.Folder(t, "sparse-nodes")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	machine, err := numa.Read(root.FS())
	if err != nil {
		t.Fatal(err)
	}
	var table, svg bytes.Buffer
	if err := draw.Text(&table, machine, draw.TextOptions{Width: 60}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(table.String(), mustCall(t, "topology", "--root", dir, "--width", "60")); diff != "" {
		t.Errorf("table (-draw +command):\n%s", diff)
	}
	if err := draw.SVG(&svg, machine); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(svg.String(), mustCall(t, "topology", "--root", dir, "-o", "svg")); diff != "" {
		t.Errorf("svg (-draw +command):\n%s", diff)
	}
	var fromJSON, fromYAML draw.Document
	if err := json.Unmarshal([]byte(mustCall(t, "topology", "--root", dir, "-o", "json")), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(mustCall(t, "topology", "--root", dir, "-o", "yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if len(fromJSON.Nodes) != 6 || !reflect.DeepEqual(fromJSON, draw.Topology(machine)) || !reflect.DeepEqual(fromYAML, fromJSON) {
		t.Errorf("json\n%+v\nyaml\n%+v", fromJSON, fromYAML)
	}
}
