package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// Every answer says what it is, and docs/kubectl-numa.md has every kind.
func TestDocumentsHaveAVersionAndAKind(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	rig, dir := sample.Folder(t, "rig"), clusterFolder(t, "cpu: 2")
	page, err := os.ReadFile("../../docs/kubectl-numa.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string][]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\| `([a-z-]+)`").FindAllStringSubmatch(string(page), -1) {
		documented[row[2]] = append(documented[row[2]], row[1])
	}
	kinds := make(map[any]bool)
	for _, args := range []string{
		"topology --root " + rig, "pick --cpus 2 --root " + rig, "status -f " + dir, "simulate -f " + dir, "explain pod a -f " + dir, "explain claims -f " + dir,
		"suggest-evictions pod a -f " + dir, "lint -f " + dir, "translate -f " + dir, "validate", "drift", "version", "features", "migrate",
	} {
		command, _, _ := strings.Cut(args, " ")
		for format, decode := range map[string]func([]byte, any) error{
			"json": json.Unmarshal, "yaml": func(text []byte, into any) error { return yaml.UnmarshalStrict(text, into) },
		} {
			_, stdout, stderr := call(strings.Fields(args + " -o " + format)...)
			var document map[string]any
			if err := decode([]byte(stdout), &document); err != nil {
				t.Errorf("%s -o %s: %v, stderr %q, stdout\n%s", args, format, err, stderr, stdout)
				continue
			}
			if document["apiVersion"] != "cli.dra.numa/v1alpha1" || !slices.Contains(documented[command], fmt.Sprint(document["kind"])) || len(document) < 3 {
				t.Errorf("%s -o %s: apiVersion %v, kind %v, want kind %q", args, format, document["apiVersion"], document["kind"], documented[command])
			}
			kinds[document["kind"]] = true
		}
	}
	for command, list := range documented {
		for _, kind := range list {
			if !kinds[kind] {
				t.Errorf("the page says that %s has the kind %s: no command has it", command, kind)
			}
		}
	}
}
