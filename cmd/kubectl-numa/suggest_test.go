package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/evict"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// runningPods are running pods that hold all CPUs of the rig's machine: 2 CPUs of NUMA
// node 0, and 4 CPUs each of the NUMA nodes 1, 2 and 3.
func runningPods(t *testing.T, dir string) {
	t.Helper()
	var b strings.Builder
	for node, cpus := range []int{2, 4, 4, 4} {
		fmt.Fprintf(&b, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: claim-%[1]d}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: %[2]d}}}}]}}
status:
  reservedFor: [{resource: pods, name: running-%[1]d, uid: uid-%[1]d}]
  allocation:
    devices:
      results:
      - {request: zone, driver: dra.numa, pool: worker-1, device: numa-%[1]d, shareID: %[4]s%[1]d, consumedCapacity: {cpu: "%[2]d"}}
---
apiVersion: v1
kind: Pod
metadata: {name: running-%[1]d, uid: uid-%[1]d}
spec: {nodeName: worker-1, priority: %[3]d, resourceClaims: [{name: c, resourceClaimName: claim-%[1]d}], containers: [{name: main}]}
---`, node, cpus, 10-node, "00000000-0000-8000-8000-00000000000")
	}
	testfiles.Write(t, filepath.Join(dir, "running.yaml"), b.String())
}

// suggestion is also in the documentation.
const suggestion = `default/urgent: the pod fits on worker-1 if 1 pod is deleted; fewer are not enough

POD                PRIORITY  NODE      CLAIMS
default/running-3  7         worker-1  claim-3
`

func TestSuggestEvictions(t *testing.T) {
	dir := clusterFolder(t)
	runningPods(t, dir)
	text := strings.NewReplacer("AMOUNTS", "cpu: 4")
	waiting := strings.ReplaceAll(podManifest, "NAME", "urgent") + "  priority: 10\n---\n" + strings.ReplaceAll(podManifest, "NAME", "modest") + "  priority: 1\n"
	testfiles.Write(t, filepath.Join(dir, "waiting.yaml"), text.Replace(waiting))
	for _, args := range []string{"urgent", "default/urgent -n other"} {
		if got := mustCall(t, append(strings.Fields("suggest-evictions pod "+args), "-f", dir)...); got != suggestion {
			t.Errorf("suggest-evictions pod %s says\n%swant\n%s", args, got, suggestion)
		}
	}
	var answer evict.Suggestion
	if err := json.Unmarshal([]byte(mustCall(t, "suggest-evictions", "pod", "urgent", "-f", dir, "-o", "json")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Pod != "default/urgent" || answer.Node != "worker-1" || answer.Method != evict.Exact || len(answer.Evictions) != 1 || answer.Evictions[0].Priority != 7 {
		t.Errorf("answer in JSON: %+v", answer)
	}
	exitCode, stdout, stderr := call("suggest-evictions", "pod", "modest", "-f", dir)
	if exitCode != exitFailed || stdout != "default/modest: no eviction helps: no running pod has a priority below 1, except pods that would come back\n" ||
		stderr != "kubectl-numa: error: no eviction helps\nkubectl-numa: hint: run kubectl numa explain pod modest to see why the pod does not fit\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", exitCode, stdout, stderr)
	}
	small := clusterFolder(t, "cpu: 4")
	if got := mustCall(t, "suggest-evictions", "pod", "a", "-f", small); got != "default/a: nothing has to be deleted: the pod fits on worker-1 now\n" {
		t.Errorf("for a pod that has room: %s", got)
	}
}

// The best pod to delete has a budget that allows nothing now.
const budgets = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: default}
spec: {minAvailable: 1, selector: {matchLabels: {app: db}}}
status: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}
`

const budgetedSuggestion = `default/urgent: the pod fits on worker-1 if 1 pod is deleted; fewer are not enough
left out: default/running-3: PodDisruptionBudget db allows no disruption

POD                PRIORITY  NODE      CLAIMS
default/running-2  8         worker-1  claim-2
`

// Files, a cluster and a bundle give the same answer. Who may not read budgets is told so.
func TestSuggestEvictionsRespectsBudgets(t *testing.T) {
	dir := clusterFolder(t)
	runningPods(t, dir)
	path := filepath.Join(dir, "running.yaml")
	testfiles.Write(t, path, strings.Replace(testfiles.Read(t, path), "{name: running-3, uid: uid-3}\nspec: {",
		"{name: running-3, uid: uid-3, labels: {app: db}}\nstatus: {phase: Running, conditions: [{type: Ready, status: \"True\"}]}\nspec: {", 1))
	testfiles.Write(t, filepath.Join(dir, "waiting.yaml"), strings.NewReplacer("AMOUNTS", "cpu: 4", "NAME", "urgent").Replace(podManifest)+"  priority: 10\n")
	plain := objectAnswers(t, dir)
	testfiles.Write(t, filepath.Join(dir, "budgets.yaml"), budgets)
	objects, err := files{dir}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := installedCluster(t)
	maps.Copy(a, plain)
	unreadable := maps.Clone(a)
	delete(unreadable, "/apis/policy/v1/poddisruptionbudgets")
	a["/apis/policy/v1/poddisruptionbudgets"] = listOf("PodDisruptionBudgetList", "policy/v1", objects.Budgets)
	bundle := filepath.Join(t.TempDir(), "bundle.tar.gz")
	live := a.serve(t)
	if exitCode, _, stderr := call("gather", "--file", bundle, "--kubeconfig", live); exitCode != exitDone {
		t.Fatal(stderr)
	}
	for _, from := range []string{"-f " + dir, "--kubeconfig " + live, "--from " + bundle} {
		_, got, _ := call(strings.Fields("suggest-evictions pod default/urgent " + from)...)
		if diff := cmp.Diff(budgetedSuggestion, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
	}
	_, got, _ := call("suggest-evictions", "pod", "default/urgent", "--kubeconfig", unreadable.serve(t))
	if want := "\nnote: the answer does not consider PodDisruptionBudgets: list PodDisruptionBudgets: "; !strings.Contains(got, want) || !strings.Contains(got, "running-3 ") {
		t.Errorf("without the right to read budgets: %s", got)
	}
}

// A suggestion leaves out the same as an explanation, and says so.
func TestSuggestEvictionsSaysWhatIsNotSimulated(t *testing.T) {
	dir := clusterFolder(t)
	runningPods(t, dir)
	testfiles.Write(t, filepath.Join(dir, "waiting.yaml"), strings.NewReplacer("AMOUNTS", "cpu: 4", "NAME", "urgent").Replace(podManifest)+
		"  priority: 10\n  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\n")
	var answer evict.Suggestion
	if err := json.Unmarshal([]byte(mustCall(t, "suggest-evictions", "pod", "urgent", "-f", dir, "-o", "json")), &answer); err != nil {
		t.Fatal(err)
	}
	if _, document := explained(t, "pod", "urgent", "-f", dir); len(answer.Notes) != 1 || !slices.Equal(answer.Notes, document.Notes) {
		t.Errorf("notes are %q, and those of explain %q", answer.Notes, document.Notes)
	}
}

func TestSuggestEvictionsWithoutSense(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4")
	testfiles.Write(t, filepath.Join(dir, "running.yaml"), `
apiVersion: v1
kind: Pod
metadata: {name: r}
spec: {nodeName: worker-1, containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: d, deletionTimestamp: 2026-01-01T00:00:00Z}
spec: {containers: [{name: main}]}
---
apiVersion: v1
kind: Pod
metadata: {name: f}
spec: {containers: [{name: main}]}
status: {phase: Failed}
`)
	for args, want := range map[string]string{
		"suggest-evictions claim a -f " + dir: `want pod NAME, not "claim a"`,
		"suggest-evictions pod x -f " + dir:   "there is no Pod default/x in the files",
		"suggest-evictions pod r -f " + dir:   "pod default/r is already assigned to node worker-1, want a pod without a node",
		"suggest-evictions pod d -f " + dir:   "pod default/d is being deleted, so the scheduler does not place it",
		"suggest-evictions pod f -f " + dir:   "pod default/f has ended, so the scheduler does not place it: Failed",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || stderr != "kubectl-numa: error: "+want+"\n" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q, want %q", args, exitCode, stdout, stderr, want)
		}
	}
	testfiles.Write(t, filepath.Join(dir, "class.yaml"), "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: zone.dra.numa}\n"+
		`spec: {selectors: [{cel: {expression: 'device.attributes["resource.kubernetes.io"].numaNod == 1'}}]}`)
	exitCode, _, stderr := call("suggest-evictions", "pod", "a", "-f", dir)
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: the scheduler gives up on pod default/a") || !strings.Contains(stderr, "kubectl-numa: hint: ") {
		t.Errorf("where the scheduler gives up: exit code %d, stderr %q", exitCode, stderr)
	}
}
