package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
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

// What is printed can be applied: an escape for a character that is not shown is that character.
func TestObjectsInYAMLKeepTextsThatAreNotShown(t *testing.T) {
	want := map[string]string{"a\u200bkey": "1", "lines": "a\u00adb\n  c\n", "tag": "\u200b\U000e0041 on", "like a number": "1\u2060"}
	for r := ' '; r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			want[fmt.Sprintf("%U", r)] = fmt.Sprintf("%c, and %[1]c ", r)
		}
	}
	for _, other := range []map[string]string{{"shown": "é"}, nil} {
		var stdout bytes.Buffer
		list := []map[string]string{want, other}
		if err := newPrinter(formatYAML).print(message.NewWriter(&stdout), objects("objects", list)); err != nil {
			t.Fatal(err)
		}
		wantShown(t, "objects", stdout.String())
		for i, text := range strings.Split(stdout.String(), "---\n") {
			var got map[string]string
			if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if diff := cmp.Diff(list[i], got); diff != "" {
				t.Errorf("object %d (-want +got):\n%s", i, diff)
			}
		}
	}
}
