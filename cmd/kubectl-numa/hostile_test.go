package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// evilObjects have texts that a terminal would obey: they set its title, clear it, turn text
// around, and begin a line that looks like an answer.
const evilObjects = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: evil, labels: {app: "\x9b2J"}}
spec:
  devices:
    requests:
    - name: zone
      exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 1, "\e[8mcpus": 1}}, selectors: [{cel: {expression:
        "[\"\e]0;owned\a\"].size() == 9 && \"\u202e\u009b2J\u007f\n\nowned: fits\" == \"\""}}]}
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
---
apiVersion: v1
kind: Pod
metadata: {name: static, annotations: {"\e[2J": "\u202e"}}
spec:
  containers: [{name: "\e]0;owned\a\n\nowned: fits", resources: {limits: {cpu: 1, memory: 64Mi, "\e[8m/gpu": 1}}}]
`

// wantShown fails the test if a terminal would obey a part of the text.
func wantShown(t *testing.T, args, text string) {
	t.Helper()
	if fault := object.PrintFault(text); fault != "" {
		t.Errorf("%s %s", args, fault)
	}
}

func TestNothingOfAnObjectIsObeyedByATerminal(t *testing.T) {
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "hostile.yaml"), evilObjects)
	shown := ""
	for _, args := range []string{
		"simulate", "explain pod evil", "explain claim evil", "explain pods", "explain claims", "lint", "translate", "suggest-evictions pod evil", "status",
		"simulate --all-nodes", "lint --ignore \x1b[2J", "status \x1b[2J", "explain pod \u202e", "\x1b[2J",
	} {
		for _, format := range []string{"", "-o wide", "-o name", "-o json", "-o yaml"} {
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
	_, stdout, _ := call("translate", "-f", dir, "-o", "objects")
	wantShown(t, "translate -o objects", stdout)
	if !strings.Contains(stdout, "kind: ResourceClaimTemplate") {
		t.Errorf("translate -o objects prints\n%s", stdout)
	}
	for _, part := range []string{`\u001b`, `\u202e`} {
		if !strings.Contains(shown, part) {
			t.Errorf("%s is shown by no command", part)
		}
	}
}

// lookAlike is a pod of a tenant with the labels and the owner of the daemon's pods. Its name
// comes before that of the daemon's pod.
const lookAlike = `
apiVersion: v1
kind: Pod
metadata:
  name: driver-a
  namespace: tenant
  labels: {app.kubernetes.io/part-of: dra-driver-numa, app.kubernetes.io/component: daemon}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: dra-driver-numa, uid: set, controller: true}]
spec: {nodeName: worker-1, containers: [{name: driver, image: "d:1"}]}
status: {containerStatuses: [{name: driver, ready: true, restartCount: 0, image: 'd:1', imageID: x, state: {running: {}}}]}
`

// A tenant's pod that looks like the daemon's hides no drift, is in no bundle, and does not
// make validate fail.
func TestPodsOfATenantAreIgnoredAndReported(t *testing.T) {
	a := installedCluster(t)
	tenant := &snapshot.Snapshot{}
	if err := tenant.Read("pods", strings.NewReader(installed+"---"+lookAlike)); err != nil {
		t.Fatal(err)
	}
	a["/api/v1/pods"] = listOf("PodList", "v1", tenant.Pods)
	a[pod] = stateOf(leftOver)
	a["/api/v1/namespaces/tenant/pods/driver-a/exec"] = stateOf(nothing)
	a["/api/v1/namespaces/tenant/pods/driver-a/log"] = "believe me\n"
	t.Setenv("KUBECONFIG", a.serve(t))
	const note = "kubectl-numa: note: ignoring pods that have the driver's label and are not the driver's: 1 in namespace tenant: driver-a\n"
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if exitCode, _, stderr := call("gather", "--file", file); exitCode != exitDone || stderr != note {
		t.Errorf("gather: exit code %d, stderr %q", exitCode, stderr)
	}
	for _, from := range []string{"", " --from " + file, " --driver-namespace dra-numa"} {
		exitCode, stdout, stderr := call(strings.Fields("drift" + from)...)
		if exitCode != exitFailed || stdout != driftText || stderr != note+"kubectl-numa: error: found 2 problems\n" {
			t.Errorf("drift%s: exit code %d, stderr %q, stdout\n%s", from, exitCode, stderr, stdout)
		}
		exitCode, stdout, stderr = call(strings.Fields("validate" + from)...)
		if lines := strings.Split(stdout, "\n"); exitCode != exitDone || stderr != "" || len(lines) != 3 || !strings.Contains(lines[1], "look-alike") {
			t.Errorf("validate%s: exit code %d, stderr %q, stdout\n%s", from, exitCode, stderr, stdout)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, all := unpacked(t, text); strings.Contains(all, "believe me") {
		t.Error("the bundle has the log of the tenant's pod")
	}
}

// Without the binding, the user names the namespace.
func TestDriverThatCannotBeFoundIsExitCode2(t *testing.T) {
	a := installedCluster(t)
	a["/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"] = nil
	t.Setenv("KUBECONFIG", a.serve(t))
	exitCode, _, stderr := call("drift")
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: list ClusterRoleBindings of the driver: ") || !strings.Contains(stderr, "\nkubectl-numa: hint: set --driver-namespace") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
	if stdout := mustCall(t, "drift", "--driver-namespace", "dra-numa"); stdout != noProblems {
		t.Errorf("drift says\n%s", stdout)
	}
}

func TestNothingOfANodeIsObeyedByATerminal(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(`{"partitions": [{"cgroup": "pods/\u001b]0;owned\u0007\u202e\n\nowned: fits", "cpus": "4-5", "state": "root"}]}`)
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
