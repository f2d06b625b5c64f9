package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// scoredNode has two GPUs.
const scoredNode = `
apiVersion: v1
kind: Node
metadata: {name: NODE, labels: {disk: DISK}}
status: {allocatable: {cpu: 8, memory: 16Gi, pods: 110}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: NODE-gpus}
spec: {driver: dra.numa, nodeName: NODE, pool: {name: NODE, generation: 1, resourceSliceCount: 1}, devices: [
  {name: gpu-0, attributes: {kind: {string: gpu}}},
  {name: gpu-1, attributes: {kind: {string: gpu}}}]}
`

const scoredPod = `
apiVersion: v1
kind: Pod
metadata: {name: POD}
spec:
  resourceClaims: [{name: devices, resourceClaimTemplateName: gpu}]
  containers: [{name: main, resources: {claims: [{name: devices}], requests: {cpu: 1, memory: 1Gi}}}]
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: disk, operator: In, values: [DISK]}]}}]}}
`

// scoredFolder has two nodes and two pods. Node worker-2 has a fast disk, and pod b prefers
// such a disk.
func scoredFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"class.yaml":    testfiles.Read(t, "../../deviceclasses/gpu.dra.numa.yaml"),
		"node-1.yaml":   strings.NewReplacer("NODE", "worker-1", "DISK", "slow").Replace(scoredNode),
		"node-2.yaml":   strings.NewReplacer("NODE", "worker-2", "DISK", "fast").Replace(scoredNode),
		"pod-a.yaml":    strings.NewReplacer("POD", "a", "DISK", "none").Replace(scoredPod),
		"pod-b.yaml":    strings.NewReplacer("POD", "b", "DISK", "fast").Replace(scoredPod),
		"template.yaml": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: gpu}\nspec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.dra.numa}}]}}}\n",
	} {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func TestScoresAreShownAsThePageShowsThem(t *testing.T) {
	dir := scoredFolder(t)
	page := testfiles.Read(t, "../../docs/kubectl-numa.md")
	want := "$ kubectl numa simulate -f cluster/\n" + mustCall(t, "simulate", "-f", dir)
	if !strings.Contains(page, want) {
		t.Errorf("docs/kubectl-numa.md lacks\n%s", want)
	}
	if wide := mustCall(t, "simulate", "-f", dir, "--all-nodes", "-o", "wide"); !strings.Contains(wide, "  worker-2 463  worker-1,worker-2\n") {
		t.Errorf("simulate -o wide says\n%s", wide)
	}
	text, document := explained(t, "pod", "b", "-f", dir)
	head, _, _ := strings.Cut(text, "\n\nworker-1: fits\n")
	if want := "$ kubectl numa explain pod b -f cluster/\n" + head + "\n"; head == text || !strings.Contains(page, want) {
		t.Errorf("explain says\n%s\ndocs/kubectl-numa.md lacks\n%s", text, want)
	}
	if len(document.Scores) != 2 || document.Scores[0].Node != "worker-2" || document.Scores[0].Plugins["NodeAffinity"] != 200 || document.Among != 2 {
		t.Errorf("the choice is %+v", document.Choice)
	}
}

func TestStrategiesShowNoScores(t *testing.T) {
	dir := scoredFolder(t)
	for _, strategy := range []string{"first", "spread", "pack"} {
		if stdout := mustCall(t, "simulate", "-f", dir, "--strategy", strategy); strings.Contains(stdout, "SCORE") {
			t.Errorf("--strategy %s prints\n%s", strategy, stdout)
		}
	}
}

// Only the best nodes are named, and the others counted.
func TestScoresOfManyNodes(t *testing.T) {
	dir := scoredFolder(t)
	for i := range 118 {
		node := fmt.Sprintf("idle-%03d", i)
		testfiles.Write(t, filepath.Join(dir, node+".yaml"), strings.NewReplacer("NODE", node, "DISK", "slow").Replace(scoredNode))
	}
	exitCode, stdout, stderr := call("simulate", "-f", dir)
	if want := "  idle-001 463, idle-002 463, idle-003 463 and 116 more\n"; exitCode != exitDone || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, simulate prints\n%swant in it %q", exitCode, stdout, want)
	}
	if want := "kubectl-numa: note: the scheduler scores only some of the feasible nodes, and may choose any of them; pods: 2\n"; stderr != want {
		t.Errorf("simulate says %q, want %q", stderr, want)
	}
	text, _ := explained(t, "pod", "b", "-f", dir)
	if want := "\n110 more nodes have lower or equal scores; -o json shows all of them\n"; !strings.Contains(text, want) {
		t.Errorf("explain prints\n%swant in it %q", text, want)
	}
}

func TestWhatMakesAChoiceUncertainIsSaidOnce(t *testing.T) {
	dir := scoredFolder(t)
	testfiles.Write(t, filepath.Join(dir, "pod-c.yaml"), `
apiVersion: v1
kind: Pod
metadata: {name: c, labels: {app: c}}
spec:
  schedulerName: other
  containers: [{name: main}]
  affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: disk, labelSelector: {}, namespaceSelector: {matchLabels: {a: b}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: d, namespace: team}
spec: {nodeName: worker-1, containers: [{name: main}]}
`)
	_, _, stderr := call("simulate", "-f", dir)
	want := "kubectl-numa: note: spec.schedulerName other is not simulated; pods that use it: 1\n" +
		"kubectl-numa: note: namespaceSelector of pod affinity is not simulated; pods that use it: 1\n"
	if stderr != want {
		t.Errorf("simulate says\n%swant\n%s", stderr, want)
	}
}
