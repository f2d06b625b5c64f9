package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// listedPods is a cluster with pods that wait for a node, pods that have one, and pods of
// another scheduler.
func listedPods(t *testing.T) (dir string) {
	t.Helper()
	dir = waitingPods(t)
	const runs = "apiVersion: v1\nkind: Pod\nmetadata: {name: runs, namespace: b}\nspec: {nodeName: worker-1, containers: [{name: main}]}\nstatus: {phase: Running}\n"
	for file, text := range map[string]string{
		"starting.yaml": startingCluster,
		"pod-4.yaml":    podWith("b", "{app: x}", "fourth"),
		"pod-5.yaml":    podWith("b", "{app: x}", "foreign") + "  schedulerName: other\n---\n" + runs,
	} {
		testfiles.Write(t, filepath.Join(dir, file), text)
	}
	return dir
}

func explainedAll(t *testing.T, args ...string) (list explanationList) {
	t.Helper()
	if err := json.Unmarshal([]byte(mustCall(t, append([]string{"explain", "-o", "json"}, args...)...)), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// A cluster has many pods that run, and few that wait.
func BenchmarkExplainOfAll(b *testing.B) {
	dir := b.TempDir()
	list := []string{`{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n"}}`}
	for i := range 5000 {
		list = append(list, fmt.Sprintf(`{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p-%[1]d", "namespace": "a"}, "status": {"phase": "Running"},
"spec": {"nodeName": "n", "containers": [{"name": "main"}], "resourceClaims": [{"name": "c", "resourceClaimName": "c-%[1]d"}]}}`, i),
			fmt.Sprintf(`{"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "c-%d", "namespace": "a"}}`, i))
	}
	if err := os.WriteFile(filepath.Join(dir, "objects.json"), []byte(strings.Join(list, "\n---\n")), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if exitCode, stdout, stderr := call("explain", "-A", "-f", dir); exitCode != exitDone {
			b.Fatal(stdout, stderr)
		}
	}
}

// The answer about each pod or claim is that about it alone.
func TestExplainOfAllSaysWhatItSaysOfEach(t *testing.T) {
	dir := listedPods(t)
	for args, want := range map[string]string{
		"pods -A":                  "a/first b/second b/third b/fourth b/foreign team/stuck",
		"-A":                       "a/first b/second b/third b/fourth b/foreign team/stuck",
		"po -n b":                  "b/second b/third b/fourth b/foreign",
		"pods -n b -l app=x":       "b/second b/fourth b/foreign",
		"pods -n team":             "team/stuck",
		"pods":                     "",
		"claims -A":                "a/first b/second b/third b/fourth b/foreign team/cpus",
		"resourceclaims -n team":   "team/cpus",
		"claims -A -l app=x":       "a/first b/second b/fourth b/foreign",
		"pod -n b -l app notin(x)": "b/third",
	} {
		fields := strings.SplitN(args, " -l ", 2)
		line := append(strings.Fields(fields[0]), "-f", dir)
		if len(fields) > 1 {
			line = append(line, "-l", fields[1])
		}
		list := explainedAll(t, line...)
		var got []string
		for _, answer := range list.Items {
			got = append(got, answer.Pod+answer.Claim)
			kind := "pod"
			if answer.Claim != "" {
				kind = "claim"
			}
			var alone simulate.Explanation
			if err := json.Unmarshal([]byte(mustCall(t, "explain", kind, answer.Pod+answer.Claim, "-f", dir, "-o", "json")), &alone); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(alone, answer, cmpopts.IgnoreUnexported(simulate.Placed{})); diff != "" {
				t.Errorf("explain %s: %s (-alone +in the list):\n%s", args, answer.Pod+answer.Claim, diff)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("explain %s is about %q, want %q", args, got, want)
		}
	}
}

const listedText = `POD ANSWER FIRST OBSTACLE
a/first fits on 1 of 1 nodes: worker-1 -
b/second fits on 1 of 1 nodes: worker-1 -
b/third fits on 1 of 1 nodes: worker-1 -
b/fourth does not fit on the only node worker-1: request zone: asks for 4 cpu of one device: numa-0 has 2, numa-1 has 0 of 4 left, numa-2 has 0 of 4 left, numa-3 has 0 of 4 left
b/foreign fits on 1 of 1 nodes: worker-1 -
team/stuck is assigned to node worker-1, but does not start there worker-1: ResourceClaim "cpus" is not allocated: the pod got its node without the scheduler, which alone allocates claims
note: earlier pods of other schedulers are not placed first: 4
note: spec.schedulerName other is not simulated; pods that use it: 1`

func TestExplainOfAllIsATable(t *testing.T) {
	dir := listedPods(t)
	text := mustCall(t, "explain", "pods", "-A", "-f", dir)
	if diff := cmp.Diff(listedText, oneSpace(text)); diff != "" {
		t.Errorf("explain (-want +got):\n%s", diff)
	}
	if wide := mustCall(t, "explain", "pods", "-n", "team", "-o", "wide", "-f", dir); !strings.Contains(wide, "  HINTS\n") || !strings.Contains(wide, "create the pod without spec.nodeName") {
		t.Errorf("explain -o wide says\n%s", wide)
	}
	for args, want := range map[string]string{
		"pods -n none":             "no pod in namespace none waits for a node or is kept from starting\n",
		"pods -A -l app=none":      "no pod with the labels \"app=none\" waits for a node or is kept from starting\n",
		"claims -n none -o table":  "no claim in namespace none waits for its devices\n",
		"claims -n none -o wide":   "no claim in namespace none waits for its devices\n",
		"claims -n none -o name":   "",
		"claims -n none -o json":   "{\n  \"apiVersion\": \"cli.dra.numa/v1alpha1\",\n  \"kind\": \"ExplanationList\",\n  \"items\": []\n}\n",
		"pods -n team --exit-code": "",
	} {
		exitCode, got, _ := call(append(strings.Fields("explain "+args), "-f", dir)...)
		if strings.HasSuffix(args, "--exit-code") {
			if exitCode != exitFailed {
				t.Errorf("explain %s: exit code %d", args, exitCode)
			}
		} else if got != want || exitCode != exitDone {
			t.Errorf("explain %s: exit code %d, says %q, want %q", args, exitCode, got, want)
		}
	}
}

func TestExitCodeOfExplainOfAll(t *testing.T) {
	dir := listedPods(t)
	const usage = "want pod [NAME] or claim [NAME] or deployment NAME or "
	for want, rows := range map[int]map[string]string{ // with the beginning of the error
		exitDone: {"pods -n b -l app=w": "", "claims -n team": ""},
		exitFailed: {
			"pods -n b": "1 of 4 pods have an obstacle\n",
			"pods -A":   "2 of 6 pods have an obstacle\n",
		},
		exitUsage: {
			"pods -n b -A":        "--namespace b and --all-namespaces contradict each other: set only one of them\n",
			"pod first -A":        "--all-namespaces is for a list: remove it, or the name\n",
			"pod first -l app=x":  "--selector chooses among several objects: remove it, or the name\n",
			"deployments -n team": usage,
			"pod first second":    usage,
		},
	} {
		for args, problem := range rows {
			exitCode, _, stderr := call(append(strings.Fields("explain --exit-code "+args), "-f", dir)...)
			text, isError := strings.CutPrefix(stderr, "kubectl-numa: error: ")
			if exitCode != want || isError != (want != exitDone) || !isError && stderr != "" || !strings.HasPrefix(text, problem) {
				t.Errorf("explain %s: exit code %d, stderr %q, want %d and %q", args, exitCode, stderr, want, problem)
			}
		}
	}
	testfiles.Write(t, filepath.Join(dir, "class.yaml"), brokenClass)
	if exitCode, _, stderr := call("explain", "pods", "-n", "b", "-f", dir, "--exit-code"); exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: Pod b/second: the scheduler gives up: class zone.dra.numa: ") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
}

// Who may read only a namespace can list its pods.
func TestExplainOfAllForThoseWhoSeeOneNamespace(t *testing.T) {
	kubeconfig := namespaceOnly(t)
	text := mustCall(t, "explain", "--kubeconfig", kubeconfig)
	if !strings.Contains(text, "team/waits") || !strings.Contains(text, "team/stuck") || !strings.HasSuffix(text, allUnseen) {
		t.Errorf("explain says\n%s", text)
	}
	exitCode, _, stderr := call("explain", "pods", "-A", "--kubeconfig", kubeconfig)
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: read the cluster: list Nodes: forbidden: ") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
}

// The list needs one client call for the warnings of a namespace, or of all.
func TestExplainOfAllReadsTheWarnings(t *testing.T) {
	dir := listedPods(t)
	objects, err := files{dir}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := objectAnswers(t, dir)
	a["/metrics"] = gatesOn
	events := listOf("EventList", "v1", objects.Events)
	for args, path := range map[string]string{"pods -n team": "/api/v1/namespaces/team/events", "pods -A": "/api/v1/events"} {
		delete(a, "/api/v1/events")
		delete(a, "/api/v1/namespaces/team/events")
		kubeconfig := a.serve(t)
		for _, note := range explainedAll(t, append(strings.Fields(args), "--kubeconfig", kubeconfig)...).Notes {
			if !strings.HasPrefix(note, "the answer does not consider events: list Events") {
				t.Errorf("note %q", note)
			}
		}
		a[path] = events
		text := mustCall(t, append(strings.Fields("explain "+args+" -o json"), "--kubeconfig", kubeconfig)...)
		if !strings.Contains(text, "event FailedPrepareDynamicResources: no such claim") {
			t.Errorf("explain %s says\n%s", args, text)
		}
	}
}
