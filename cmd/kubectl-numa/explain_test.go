package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// explained returns the answer as text and as a document, and fails if there is
// anything on stderr.
func explained(t *testing.T, args ...string) (text string, document simulate.Explanation) {
	t.Helper()
	args = append([]string{"explain"}, args...)
	exitCode, text, stderr := call(args...)
	if exitCode != exitDone || stderr != "" {
		t.Fatalf("%q: exit code %d, stderr %q", args, exitCode, stderr)
	}
	if err := json.Unmarshal([]byte(mustCall(t, append(args, "-o", "json")...)), &document); err != nil {
		t.Fatal(err)
	}
	return text, document
}

// The pod fits on all that is free. A pod before it takes some of that, unless the
// scheduler does not place that pod.
func TestPodsThatAreAssumedToBePlacedFirstAreNamed(t *testing.T) {
	const marker = "apiVersion: v1\nkind: Pod\nmetadata: {name: a"
	for name, row := range map[string]struct {
		change  *strings.Replacer
		assumed []string
		want    string
	}{
		"an earlier pod": {
			strings.NewReplacer(),
			[]string{"default/a"},
			"default/b: does not fit on the only node\nassumed to be placed first: default/a on worker-1\n",
		},
		"of another scheduler": {
			strings.NewReplacer("\nspec:\n  resourceClaims", "\nspec:\n  schedulerName: other\n  resourceClaims"), nil,
			"default/b: fits on 1 of 1 nodes: worker-1\nnote: earlier pods of other schedulers are not placed first: 1\n",
		},
		"that is being deleted": {
			strings.NewReplacer(marker, marker+", deletionTimestamp: 2026-01-01T00:00:00Z"), nil,
			"default/b: fits on 1 of 1 nodes: worker-1\n\nworker-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := clusterFolder(t, "memory: 800Mi", "cpu: 4, memory: 800Mi")
			path := filepath.Join(dir, "pod-a.yaml")
			testfiles.Write(t, path, row.change.Replace(testfiles.Read(t, path)))
			// Only one NUMA node has CPUs enough: that which the first pod would get too.
			slices := testfiles.Read(t, filepath.Join(dir, "slices.yml"))
			testfiles.Write(t, filepath.Join(dir, "slices.yml"), onlyDevice(t, slices, "numa-1"))
			text, document := explained(t, "pod", "b", "-f", dir)
			if !strings.HasPrefix(text, row.want) && !strings.Contains(text, row.want) {
				t.Errorf("explain says\n%swant\n%s", text, row.want)
			}
			var assumed []string
			for _, placed := range document.Assumed {
				assumed = append(assumed, placed.Pod)
				if placed.Node != "worker-1" || len(placed.Claims) != 1 || placed.Claims[0].Allocations[0].Device != "numa-1" {
					t.Errorf("assumed is %+v", placed)
				}
			}
			if diff := cmp.Diff(row.assumed, assumed); diff != "" {
				t.Errorf("assumed (-want +got):\n%s", diff)
			}
		})
	}
}

// Notes are a part of the answer, in every format.
func TestNotesBelongToTheExplanation(t *testing.T) {
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "more.yaml"), "kind: Namespace\napiVersion: v1\nmetadata: {name: team}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec:\n"+
		"  containers: [{name: main}]\n  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\n")
	text, document := explained(t, "pod", "p", "-f", dir)
	want := []string{
		"ignoring objects that do not change the answer: 1 Namespace",
		"spec.topologySpreadConstraints with DoNotSchedule is not simulated; pods that use it: 1",
	}
	if diff := cmp.Diff(want, document.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if !strings.Contains(text, "\nnote: "+strings.Join(want, "\nnote: ")+"\n") {
		t.Errorf("explain says\n%s", text)
	}
}

// Pods that run, or are placed first, may keep others away. Whoever they keep away is told so.
func TestPodsThatOthersAvoid(t *testing.T) {
	const avoids = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: t, labelSelector: {matchLabels: {app: x}}}]}}"
	const note = "required spec.affinity.podAntiAffinity of other pods is not simulated; pods that use it: 1"
	for where, spec := range map[string]string{"runs": "nodeName: worker-1, ", "waits": ""} {
		dir := clusterFolder(t)
		node := filepath.Join(dir, "node.yaml")
		testfiles.Write(t, node, strings.Replace(testfiles.Read(t, node), "{name: worker-1}", "{name: worker-1, labels: {t: a}}", 1))
		testfiles.Write(t, filepath.Join(dir, "pods.yaml"), "kind: Pod\napiVersion: v1\nmetadata: {name: "+where+"}\nspec: {"+spec+avoids+", containers: [{name: main}]}\n---\n"+
			podWith("default", "{app: x}", "kept-away")+"---\n"+podWith("default", "{app: z}", "other"))
		_, document := explained(t, "pod", "kept-away", "-f", dir)
		if !slices.Contains(document.Notes, note) {
			t.Errorf("%s: notes are %q", where, document.Notes)
		}
		_, stdout, stderr := call("simulate", "-f", dir)
		if strings.Count(stderr, "note: "+note+"\n") != 1 {
			t.Errorf("%s: simulate says %s%s", where, stdout, stderr)
		}
		if _, document := explained(t, "pod", "other", "-f", dir); slices.Contains(document.Notes, strings.Replace(note, "1", "2", 1)) {
			t.Errorf("%s: notes are %q", where, document.Notes)
		}
	}
}

// What is not simulated of a pod that is placed first changes the answer too.
func TestNotesAreAboutEarlierPodsToo(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2", "cpu: 2")
	path := filepath.Join(dir, "pod-a.yaml")
	testfiles.Write(t, path, testfiles.Read(t, path)+"  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\n")
	if _, document := explained(t, "pod", "b", "-f", dir); len(document.Notes) != 1 || !strings.Contains(document.Notes[0], "pods that use it: 1") {
		t.Errorf("notes are %q", document.Notes)
	}
}

// The scheduler looks for no node for these pods.
func TestPodsThatAskForNoNode(t *testing.T) {
	for change, want := range map[string]string{
		"metadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z":                "default/a: is being deleted, so the scheduler does not place it\n",
		"status: {phase: Failed, reason: Evicted, message: was}\nmetadata: {name: a": "default/a: has ended, so the scheduler does not place it: Failed\n",
	} {
		dir := clusterFolder(t, "cpu: 2")
		path := filepath.Join(dir, "pod-a.yaml")
		parts := strings.SplitN(testfiles.Read(t, path), "kind: Pod\n", 2)
		testfiles.Write(t, path, parts[0]+"kind: Pod\n"+strings.Replace(parts[1], "metadata: {name: a", change, 1))
		if text, _ := explained(t, "pod", "a", "-f", dir); text != want {
			t.Errorf("explain says\n%swant\n%s", text, want)
		}
	}
}

// onlyDevice keeps one device of a ResourceSlice.
func onlyDevice(t *testing.T, slices, name string) string {
	t.Helper()
	var slice resourceapi.ResourceSlice
	if err := yaml.Unmarshal([]byte(slices), &slice); err != nil {
		t.Fatal(err)
	}
	for _, device := range slice.Spec.Devices {
		if device.Name == name {
			slice.Spec.Devices = []resourceapi.Device{device}
		}
	}
	text, err := yaml.Marshal(slice)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The pod was told only that the node lacks CPUs.
func TestEveryObstacleOfANodeIsALine(t *testing.T) {
	dir := clusterFolder(t, "cpu: 6")
	path := filepath.Join(dir, "pod-a.yaml")
	testfiles.Write(t, path, strings.Replace(testfiles.Read(t, path), "requests: {cpu: 1}", "requests: {cpu: 6}", 1))
	var running strings.Builder
	for _, pod := range []string{"0: 100m", "1: 3", "2: 2", "3: 2", "4: 2", "5: 1500m"} {
		number, cpu, _ := strings.Cut(pod, ": ")
		running.WriteString("---\napiVersion: v1\nkind: Pod\nmetadata: {name: r" + number + ", namespace: team}\n" +
			"spec: {nodeName: worker-1, containers: [{name: main, resources: {requests: {cpu: " + cpu + "}}}]}\n")
	}
	testfiles.Write(t, filepath.Join(dir, "running.yaml"), running.String())
	const want = `default/a: does not fit on the only node

worker-1: 2 obstacles
- the pod requests cpu 6, but only 5400m of 16 are free
  pod team/r1 takes 3 cpu
  pod team/r2 takes 2 cpu
  pod team/r3 takes 2 cpu
  pod team/r4 takes 2 cpu
  pod team/r5 takes 1500m cpu
  and 1 more; -o json shows all of them
- request zone: asks for 6 cpu of one device: numa-0 has 2, numa-1 has 4, numa-2 has 4, numa-3 has 4
 wants of driver class selector taint in use capacity match  request
     1  4      4     4        4     4      4       *0     0  cpus/zone

hint: a request gets its cpu from one device, and no device has enough: split the request into several
`
	text, document := explained(t, "pod", "a", "-f", dir)
	if !strings.HasPrefix(text, want) {
		t.Errorf("explain says\n%swant\n%s", text, want)
	}
	if holders := document.Nodes[0].Obstacles[0].HeldBy; len(holders) != 6 || holders[5].Amount != "100m" {
		t.Errorf("holders are %+v", holders)
	}
}

// warning returns the manifest of an event of an object, and a separator after it.
func warning(name, reason, message, object string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Event\nmetadata: {name: %s, namespace: team}\ntype: Warning\nreason: %s\nmessage: %s\ninvolvedObject: {%s}\n---\n", name, reason, message, object)
}

// startingCluster has a pod with a node whose claim nobody allocates, and a Deployment
// whose pods the API server refuses.
var startingCluster = `
apiVersion: v1
kind: Pod
metadata: {name: stuck, namespace: team}
spec: {nodeName: worker-1, containers: [{name: main}], resourceClaims: [{name: cpus, resourceClaimName: cpus}]}
status: {phase: Pending}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: cpus, namespace: team}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, uid: ud}
spec: {selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: main, resources: {requests: {cpu: 17}}}]}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web-1, namespace: team, uid: ur, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: ud, controller: true}]}
spec: {selector: {matchLabels: {a: b}}}
---
` + warning("e", "FailedCreate", "exceeded quota", "kind: ReplicaSet, namespace: team, name: web-1, uid: ur") +
	warning("f", "FailedPrepareDynamicResources", "no such claim", "kind: Pod, namespace: team, name: stuck")

const (
	stuckText = `team/stuck: is assigned to node worker-1, but does not start there

worker-1: 2 obstacles
- ResourceClaim "cpus" is not allocated: the pod got its node without the scheduler, which alone allocates claims
- event FailedPrepareDynamicResources: no such claim

hint: create the pod without spec.nodeName, and with the node selector kubernetes.io/hostname: worker-1, so that the scheduler allocates its claims
`
	webText = `Deployment team/web: wants 1 pod; 0 exist, 0 of them run
- event FailedCreate: exceeded quota

team/web-new: does not fit on the only node
note: pod team/web-new does not exist: this is about a pod as the template makes it

worker-1: the pod requests cpu 17, but the node has 16
`
)

// Files and a cluster say the same.
func TestPodsThatDoNotStartAreExplained(t *testing.T) {
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "starting.yaml"), startingCluster)
	objects, err := files{dir}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster := objectAnswers(t, dir)
	cluster["/metrics"] = gatesOn
	cluster["/api/v1/namespaces/team/events"] = listOf("EventList", "v1", objects.Events)
	cluster["/apis/apps/v1/namespaces/team/deployments"] = listOf("DeploymentList", "apps/v1", objectsOf(objects.Workloads[:1]))
	cluster["/apis/apps/v1/namespaces/team/replicasets"] = listOf("ReplicaSetList", "apps/v1", objectsOf(objects.Workloads[1:]))
	kubeconfig := cluster.serve(t)
	for args, want := range map[string]string{"pod stuck": stuckText, "deployment web": webText} {
		for _, from := range []string{"-n team -f " + dir, "--kubeconfig " + kubeconfig} {
			text, document := explained(t, strings.Fields(args+" "+from)...)
			if diff := cmp.Diff(want, text); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", args, from, diff)
			}
			if is := document.Workload != nil; is != (args == "deployment web") || is && document.Workload.Obstacles[0].Sentence != "event FailedCreate: exceeded quota" {
				t.Errorf("%s: workload %+v", args, document.Workload)
			}
		}
	}
}

// Users write a kind as for kubectl, and paste what kubectl prints.
func TestKindsHaveTheNamesOfKubectl(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	testfiles.Write(t, filepath.Join(dir, "starting.yaml"), startingCluster)
	for want, spellings := range map[string][]string{
		"pod a":                  {"po a", "pods a", "Pod a", "pod/a", "po/a", "pod/default/a", "pod default/a"},
		"claim a":                {"claims a", "resourceclaim a", "resourceclaims/a", "resourceclaim.resource.k8s.io/a", "claim/default/a"},
		"deployment web -n team": {"deploy web -n team", "deploy/web -n team", "deployment.apps/web -n team", "deployments/team/web"},
	} {
		text, _ := explained(t, strings.Fields(want+" -f "+dir)...)
		for _, spelling := range spellings {
			if got, _ := explained(t, strings.Fields(spelling+" -f "+dir)...); got != text {
				t.Errorf("explain %s says\n%swant\n%s", spelling, got, text)
			}
		}
	}
	for _, args := range []string{"pod/", "/a", "pod.apps/a", "deployment.batch/web", "a", "pod/a b", "node/a"} {
		if exitCode, _, stderr := call(strings.Fields("explain -f " + dir + " " + args)...); exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: want pod [NAME] or ") {
			t.Errorf("explain %s: exit code %d, stderr %s", args, exitCode, stderr)
		}
	}
	for args, want := range map[string]string{"po/": "po/a\n:4\n", "pod/": "pod/a\n:4\n", "deploy/": ":4\n"} {
		if _, got, _ := call("__complete", "explain", "-f", dir, args); got != want {
			t.Errorf("%q completes to %q, want %q", args, got, want)
		}
	}
	if text := mustCall(t, "suggest-evictions", "po/a", "-f", dir); !strings.HasPrefix(text, "default/a: ") {
		t.Errorf("suggest-evictions says\n%s", text)
	}
}

// explain answers with exit code 0. Scripts ask for the answer in the exit code, which is
// then that of simulate.
func TestExitCodeOfExplain(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2", "cpu: 5")
	testfiles.Write(t, filepath.Join(dir, "starting.yaml"), startingCluster)
	for args, want := range map[string]struct {
		exitCode int
		stderr   string
	}{
		"pod a":                  {exitDone, ""},
		"claim a":                {exitDone, ""},
		"pod b":                  {exitFailed, "kubectl-numa: error: Pod default/b has an obstacle\n"},
		"claim b":                {exitFailed, "kubectl-numa: error: ResourceClaim default/b has an obstacle\n"},
		"pod stuck -n team":      {exitFailed, "kubectl-numa: error: Pod team/stuck has an obstacle\n"},
		"deployment web -n team": {exitFailed, "kubectl-numa: error: Deployment team/web has an obstacle\n"},
		"pod nothing":            {exitUsage, "kubectl-numa: error: there is no Pod default/nothing in the files\n"},
	} {
		args = "explain -f " + dir + " " + args
		exitCode, _, stderr := call(strings.Fields(args + " --exit-code")...)
		if exitCode != want.exitCode || stderr != want.stderr {
			t.Errorf("%s --exit-code: exit code %d, stderr %q, want %d and %q", args, exitCode, stderr, want.exitCode, want.stderr)
		}
		without, _, _ := call(strings.Fields(args)...)
		if want.exitCode != exitUsage && without != exitDone {
			t.Errorf("%s: exit code %d, want 0", args, without)
		}
		_, stdout, _ := call(strings.Fields(args + " -o json")...)
		if strings.Contains(stdout, `"blocked": true`) != (want.exitCode == exitFailed) {
			t.Errorf("%s says\n%s", args, stdout)
		}
	}
}

// The pod's other nodes do not matter if the scheduler gives up.
func TestExitCodeOfExplainIfTheSchedulerGivesUp(t *testing.T) {
	dir := clusterFolder(t, "cpu: 1")
	testfiles.Write(t, filepath.Join(dir, "class.yaml"), brokenClass)
	exitCode, _, stderr := call("explain", "pod", "a", "-f", dir, "--exit-code")
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: the scheduler gives up: class zone.dra.numa: ") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
}

// A user who may read no events gets an answer, which says so.
func TestEventsThatCannotBeReadAreNoted(t *testing.T) {
	dir := clusterFolder(t)
	testfiles.Write(t, filepath.Join(dir, "starting.yaml"), startingCluster)
	_, document := explained(t, "pod", "stuck", "--kubeconfig", testCluster(t, dir, gatesOn))
	if len(document.Notes) != 1 || !strings.HasPrefix(document.Notes[0], "the answer does not consider events: list Events of namespace team: ") {
		t.Errorf("notes are %q", document.Notes)
	}
	exitCode, _, stderr := call("explain", "deployment", "web", "--kubeconfig", testCluster(t, dir, gatesOn))
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: read the cluster: list Deployments of namespace team: ") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
	exitCode, _, stderr = call("explain", "job", "x", "-f", dir)
	if exitCode != exitUsage || stderr != "kubectl-numa: error: there is no Job default/x in the files\n" {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
}

// objectsOf returns the objects as an API server has them.
func objectsOf(workloads []*snapshot.Workload) (objects []metav1.Object) {
	for _, workload := range workloads {
		objects = append(objects, workload.Object)
	}
	return objects
}

// Such a pod fits, but its container starts without what the claim holds.
func TestExplainNamesRequestsThatTheClaimLacks(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	path := filepath.Join(dir, "pod-a.yaml")
	testfiles.Write(t, path, strings.Replace(testfiles.Read(t, path), "claims: [{name: cpus}]", "claims: [{name: cpus, request: cpus}]", 1))
	text, document := explained(t, "pod", "a", "-f", dir)
	const want = `spec.containers[0].resources.claims[0].request: "cpus" is no request of the claim: the claim has request zone, so the container starts without its devices`
	if document.Node != "worker-1" || len(document.Notes) != 1 || document.Notes[0] != want || !strings.Contains(text, "note: "+want) {
		t.Errorf("explain says\n%swant the note\n%s", text, want)
	}
}
