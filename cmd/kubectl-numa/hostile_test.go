package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"sigs.k8s.io/yaml"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// hostile is a claim whose texts a terminal would obey: they set its title, clear it, turn
// text around, and begin a line that looks like an answer.
const hostile = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: evil, labels: {app: "\x9b2J"}}
spec:
  devices:
    requests:
    - name: zone
      exactly:
        deviceClassName: zone.dra.numa
        capacity: {requests: {cpu: 1, "\e[8mcpus": 1}}
        selectors:
        - cel: {expression: "[\"\e]0;owned\a\"].size() == 9 && \"\u202e\u009b2J\u007f\n\nworker-1: fits\" == \"\""}
    config:
    - requests: [zone]
      opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, "\e[2J\u202e": 1}}
---
apiVersion: v1
kind: Pod
metadata: {name: evil}
spec:
  nodeSelector: {"\e]0;owned\a": "\u202e"}
  resourceClaims: [{name: cpus, resourceClaimName: evil}]
  containers: [{name: main, resources: {claims: [{name: cpus}], requests: {cpu: 1}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: running}
spec:
  nodeName: worker-1
  resourceClaims: [{name: cpus, resourceClaimName: "\e[2J\u202e"}]
  containers: [{name: "\e]0;owned\a", resources: {limits: {hugepages-2Mi: 4Mi}}}]
`

// wantShown fails the test if a terminal would obey a part of the text.
func wantShown(t *testing.T, args, text string) {
	t.Helper()
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Bidi_Control, r) {
			t.Errorf("%s prints %U in\n%q", args, r, text)
			return
		}
	}
	if strings.Contains(text, "\nworker-1: fits") {
		t.Errorf("%s lets an object begin a line:\n%s", args, text)
	}
}

func TestNothingOfAnObjectIsObeyedByATerminal(t *testing.T) {
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "hostile.yaml"), hostile)
	shown := ""
	for _, args := range []string{
		"simulate", "explain pod evil", "explain claim evil", "lint", "suggest-evictions pod evil", "status",
		"simulate --all-nodes", "lint --ignore \x1b[2J", "status \x1b[2J", "explain pod \u202e", "\x1b[2J",
	} {
		for _, format := range []string{"", "-o json", "-o yaml"} {
			all := append(strings.Fields(args), strings.Fields("-f "+dir+" "+format)...)
			_, stdout, stderr := call(all...)
			wantShown(t, args+" "+format, stdout)
			wantShown(t, args+" "+format, stderr)
			if stdout != "" && format == "-o json" && !json.Valid([]byte(stdout)) {
				t.Errorf("%s: no JSON:\n%s", args, stdout)
			}
			if err := yaml.Unmarshal([]byte(stdout), new(any)); err != nil && format == "-o yaml" {
				t.Errorf("%s: no YAML, %v:\n%s", args, err, stdout)
			}
			shown += stdout
		}
	}
	for _, part := range []string{`\u001b`, `\u202e`} {
		if !strings.Contains(shown, part) {
			t.Errorf("%s is shown by no command", part)
		}
	}
}

func TestNothingOfANodeIsObeyedByATerminal(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(`{"partitions": [{"cgroup": "pods/\u001b]0;owned\u0007\u202e\n\nworker-1: fits", "cpus": "4-5", "state": "root"}]}`)
	a["/api/v1/nodes/worker-1/proxy/configz"] = "\x1b]0;owned\a\u202e"
	a["/metrics"] = "kubernetes_feature_enabled{\x1b]0;owned\a} 1\n"
	t.Setenv("KUBECONFIG", a.serve(t))
	for _, args := range []string{"drift", "validate", "gather --file " + filepath.Join(t.TempDir(), "b.tar.gz"), "simulate"} {
		_, stdout, stderr := call(strings.Fields(args)...)
		wantShown(t, args, stdout)
		wantShown(t, args, stderr)
		if args == "drift" && !strings.Contains(stdout, `\u001b]0;owned`) {
			t.Errorf("drift hides what the node says:\n%s", stdout)
		}
	}
}
