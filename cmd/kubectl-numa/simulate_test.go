package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// clusterFolder has a node with the slices of the rig's machine, the class of zones, and
// one pod per list of amounts, which asks for these amounts of a zone.
func clusterFolder(t *testing.T, amounts ...string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	write("node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: worker-1}\nstatus: {allocatable: {cpu: 16, memory: 4Gi, pods: 110}}\n")
	write("slices.yml", mustCall(t, "slices", "--root", sample.Folder(t, "rig"), "--node-name", "worker-1"))
	write("class.yaml", testfiles.Read(t, "../../deviceclasses/zone.dra.numa.yaml"))
	for i, amounts := range amounts {
		name := string(rune('a' + i))
		write("pod-"+name+".yaml", strings.NewReplacer("NAME", name, "AMOUNTS", amounts).Replace(podManifest))
	}
	write("notes.txt", "not for a program")
	return dir
}

const podManifest = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: NAME}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {AMOUNTS}}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  resourceClaims: [{name: cpus, resourceClaimName: NAME}]
  containers: [{name: main, resources: {claims: [{name: cpus}], requests: {cpu: 1}}}]
`

func TestSimulatePlacesPodsInOrder(t *testing.T) {
	dir := clusterFolder(t, "cpu: 3", "cpu: 2")
	stdout := mustCall(t, "simulate", "-f", dir)
	const want = `POD        NODE      CLAIM  REQUEST  DEVICE                    CAPACITY
default/a  worker-1  a      zone     dra.numa/worker-1/numa-1  cpu 4
default/b  worker-1  b      zone     dra.numa/worker-1/numa-0  cpu 2
`
	if stdout != want {
		t.Errorf("simulate says\n%swant\n%s", stdout, want)
	}
}

// What is placed takes the place of what it was made from, also of pods of workloads, whichever
// file is read first.
func TestSimulateGoesOnFromItsObjects(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4")
	const template = "template: {spec: {resourceClaims: [{name: cpus, resourceClaimTemplateName: two}], containers: [{name: main, resources: {claims: [{name: cpus}], requests: {cpu: 1}}}]}}"
	workload := func(replicas int) {
		testfiles.Write(t, filepath.Join(dir, "work.yaml"), fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: work}
spec: {replicas: %d, `+template+`}
`, replicas))
	}
	workload(2)
	placed := filepath.Join(t.TempDir(), "placed.yaml")
	testfiles.Write(t, placed, mustCall(t, "simulate", "-f", dir, "-o", "objects"))
	for _, files := range [][]string{{"-f", dir, "-f", placed}, {"-f", placed, "-f", dir}} {
		if again := mustCall(t, append([]string{"simulate", "-o", "jsonpath={.pods[*].pod}"}, files...)...); again != "" {
			t.Errorf("%q are placed a second time", again)
		}
		if status := mustCall(t, append([]string{"status"}, files...)...); !strings.Contains(status, "\ncpu 6 of 14 free, ") {
			t.Errorf("status does not say that 6 of 14 CPUs are free:\n%s", status)
		}
	}
	workload(3)
	if more := mustCall(t, "simulate", "-f", dir, "-f", placed, "-o", "jsonpath={.pods[*].pod} on {.pods[*].claims[*].allocations[*].device}"); more != "default/work-2 on numa-2" {
		t.Errorf("the next pod is %s, want default/work-2 on numa-2", more)
	}
}

// Pods of workloads come after pods. A DaemonSet has no pod on a node that it does not
// select. The pods of a workload that has a UID are objects of its cluster.
func TestSimulatePlacesPodsOfWorkloads(t *testing.T) {
	dir := clusterFolder(t, "cpu: 1")
	const container = "{name: main, resources: {claims: [{name: cpus}], requests: {cpu: 1}}}"
	const template = "template: {spec: {resourceClaims: [{name: cpus, resourceClaimTemplateName: two}], containers: [" + container + "]}}"
	testfiles.Write(t, filepath.Join(dir, "a-workloads.yaml"), `
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: zone, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {replicas: 2, `+template+`}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec: {`+template+`}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: elsewhere}
spec: {template: {spec: {nodeSelector: {disk: fast}, containers: [{name: main}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {jobTemplate: {spec: {parallelism: 2, template: {spec: {containers: [{name: main}]}}}}}
---
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec: {replicas: 1, template: {spec: {containers: [{name: main}]}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec: {network: {enableDNSHostnames: true}, replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 1, `+template+`}}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: running, uid: u}
spec: {replicas: 5, `+template+`}
---
apiVersion: v1
kind: Pod
metadata: {name: a-0}
spec: {containers: [{name: main}]}
---
apiVersion: v1
kind: Node
metadata: {name: worker-2}
spec: {taints: [{key: only, effect: NoSchedule}]}
`)
	var result simulate.Result
	_, stdout, stderr := call("simulate", "-f", dir, "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatal(err, stderr)
	}
	var got []string
	for _, pod := range result.Pods {
		got = append(got, fmt.Sprintf("%s on %s with %d claims", pod.Pod, pod.Node, len(pod.Claims)))
	}
	want := []string{
		"default/a-0 on worker-1 with 0 claims", "default/a on worker-1 with 1 claims",
		"default/a-1 on worker-1 with 1 claims", "default/a-2 on worker-1 with 1 claims", "default/agent-worker-1 on worker-1 with 1 claims",
		"default/nightly-0 on worker-1 with 0 claims", "default/nightly-1 on worker-1 with 0 claims",
		"default/old-0 on worker-1 with 0 claims", "default/train-w-0 on worker-1 with 1 claims", "default/train-w-1 on worker-1 with 1 claims",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(result.Unschedulable) > 0 {
		t.Errorf("placed\n%s\nwithout a node %v\nwant\n%s", strings.Join(got, "\n"), result.Unschedulable, strings.Join(want, "\n"))
	}
	if text := mustCall(t, "explain", "pod", "agent-worker-1", "-f", dir); !strings.HasPrefix(text, "default/agent-worker-1: ") {
		t.Errorf("explain says\n%s", text)
	}
}

func TestSimulateInJSONAndYAMLIsOneDocument(t *testing.T) {
	dir := clusterFolder(t, "cpu: 3")
	var fromJSON, fromYAML simulate.Result
	if err := json.Unmarshal([]byte(mustCall(t, "simulate", "-f", dir, "-o", "json", "--all-nodes")), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(mustCall(t, "simulate", "-f", dir, "-o", "yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	for _, result := range []simulate.Result{fromJSON, fromYAML} {
		if len(result.Pods) != 1 || result.Unschedulable == nil {
			t.Fatalf("result is %+v", result)
		}
		pod := result.Pods[0]
		allocation := pod.Claims[0].Allocations[0]
		cpu := allocation.ConsumedCapacity["cpu"]
		if pod.Pod != "default/a" || pod.Node != "worker-1" || strings.Join(pod.FeasibleNodes, " ") != "worker-1" || pod.Claims[0].Name != "a" ||
			allocation.Device != "numa-1" || allocation.ShareID == "" || cpu.String() != "4" {
			t.Errorf("placed %+v", pod)
		}
	}
	text := mustCall(t, "simulate", "-f", dir, "-o", "json")
	if !strings.Contains(text, `"unschedulable": []`) || text != mustCall(t, "simulate", "-f", dir, "-o", "json") {
		t.Errorf("twice the same is not the same, or nothing is null in\n%s", text)
	}
}

func TestPodWithoutNodeIsExitCode1(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4", "cpu: 6", "dra.numa/cpu: 2")
	exitCode, stdout, stderr := call("simulate", "-f", dir)
	const want = `POD        NODE      CLAIM  REQUEST  DEVICE                    CAPACITY
default/a  worker-1  a      zone     dra.numa/worker-1/numa-1  cpu 4

default/b has no node
  worker-1: request zone: asks for 6 cpu of one device: numa-0 has 2, numa-1 has 0 of 4 left, numa-2 has 4, numa-3 has 4

default/c has no node
  worker-1: request zone: no device has a capacity named "dra.numa/cpu"
`
	const wantError = "kubectl-numa: error: 2 of 3 pods have no node\nkubectl-numa: hint: run kubectl numa explain pod NAME to see why a pod does not fit\n"
	if exitCode != exitFailed || stdout != want || stderr != wantError {
		t.Errorf("exit code %d, stderr %q, stdout\n%swant 1 and\n%s", exitCode, stderr, stdout, want)
	}
}

// The scheduler gives up although the pod fits.
// brokenClass has a selector that reads an attribute that no device has.
const brokenClass = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: zone.dra.numa}\n" +
	`spec: {selectors: [{cel: {expression: 'device.attributes["resource.kubernetes.io"].numaNod == 1'}}]}`

func TestSchedulerThatGivesUpIsExitCode2(t *testing.T) {
	dir := clusterFolder(t, "cpu: 1")
	testfiles.Write(t, filepath.Join(dir, "class.yaml"), brokenClass)
	exitCode, stdout, stderr := call("simulate", "-f", dir, "-o", "json")
	if exitCode != exitUsage || !strings.Contains(stdout, "no such key: numaNod") ||
		!strings.HasPrefix(stderr, "kubectl-numa: error: the scheduler gives up on pod default/a because of node worker-1: class zone.dra.numa: ") ||
		!strings.Contains(stderr, "no such key: numaNod") || !strings.Contains(stderr, "\nkubectl-numa: hint: not every device has numaNod: begin the selector with") {
		t.Errorf("exit code %d, stdout %s, stderr %s", exitCode, stdout, stderr)
	}
}

func TestExplainNamesWhatBlocks(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4", "cpu: 6", "dra.numa/cpu: 2")
	const want = `default/b: does not fit on the only node
assumed to be placed first: default/a on worker-1

worker-1: request zone: asks for 6 cpu of one device: numa-0 has 2, numa-1 has 0 of 4 left, numa-2 has 4, numa-3 has 4
  pod default/a would hold 4 cpu of numa-1 through claim default/a
 wants of driver class selector taint in use capacity match  request
     1  4      4     4        4     4      4       *0     0  cpus/zone

hint: a request gets its cpu from one device, and no device has enough: split the request into several

The numbers count devices. "of" is all devices of the node. Each column after it
is what is left after that check. * marks the first check that leaves too few.
`
	if got := mustCall(t, "explain", "pod", "b", "-f", dir); got != want {
		t.Errorf("explain says\n%swant\n%s", got, want)
	}
	if got := mustCall(t, "explain", "pod", "default/b", "-n", "other", "-f", dir); got != want {
		t.Errorf("with the namespace before the name, explain says\n%s", got)
	}
	if got := mustCall(t, "explain", "claim", "c", "-f", dir); !strings.Contains(got, "hint: write cpu instead of dra.numa/cpu, without the driver's prefix") {
		t.Errorf("explain says\n%s", got)
	}
	var answer simulate.Explanation
	if err := json.Unmarshal([]byte(mustCall(t, "explain", "pod", "a", "-f", dir, "-o", "json")), &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Node != "worker-1" || !answer.Nodes[0].Feasible || answer.Nodes[0].Requests[0].Left.Constraint != 3 {
		t.Errorf("explanation of a pod that fits: %+v", answer)
	}
}

func TestNonsenseInFilesIsOneUsageLine(t *testing.T) {
	dir := clusterFolder(t)
	empty := t.TempDir()
	for args, want := range map[string]string{
		"simulate --context a -f " + dir:                     "--context is for a cluster, but no cluster is read: set --from-cluster to read the cluster as well",
		"simulate --kubeconfig /no/such":                     "read kubeconfig: stat /no/such: no such file or directory",
		"simulate -f /no/such":                               "--filename: stat /no/such: no such file or directory",
		"simulate -f " + empty:                               `--filename: folder "` + empty + `" has no .yaml, .yml, .json files`,
		"simulate -f " + dir + "/notes.txt":                  "read " + dir + "/notes.txt, document 1: want an object with apiVersion and kind",
		"simulate -f " + dir + " --node worker-2":            `--node "worker-2": there is no such Node in the files`,
		"simulate -f " + dir + " --feature-gates X":          `--feature-gates: feature gate "X": want NAME=true or NAME=false`,
		"simulate -f " + dir + " --feature-gates=Other=true": `--feature-gates: feature gate "Other" is not simulated, allowed are DRAAdminAccess, `,
		"explain jobs -f " + dir:                             `want pod [NAME] or claim [NAME] or deployment NAME or replicaset NAME or statefulset NAME or daemonset NAME or job NAME, not "jobs"`,
		"explain node n -f " + dir:                           `want pod [NAME] or claim [NAME] or deployment NAME or replicaset NAME or statefulset NAME or daemonset NAME or job NAME, not "node n"`,
		"explain pod x -f " + dir:                            "there is no Pod default/x in the files",
		"explain claim x -n team -f " + dir:                  "there is no ResourceClaim team/x in the files",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// Notes about what the answer leaves out go to stderr.
func TestNotesAreOnStderr(t *testing.T) {
	dir := clusterFolder(t)
	more := "kind: Namespace\napiVersion: v1\nmetadata: {name: team}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec:\n" +
		"  containers: [{name: main}]\n  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]\n"
	testfiles.Write(t, filepath.Join(dir, "more.yaml"), more)
	exitCode, stdout, stderr := call("simulate", "-f", dir)
	const want = "kubectl-numa: note: ignoring objects that do not change the answer: 1 Namespace\n" +
		"kubectl-numa: note: spec.topologySpreadConstraints with DoNotSchedule is not simulated; pods that use it: 1\n"
	if exitCode != exitDone || !strings.Contains(stdout, "default/p  worker-1\n") || stderr != want {
		t.Errorf("exit code %d, stdout %q, stderr %q", exitCode, stdout, stderr)
	}
}

// People see a few lines; programs see all nodes.
func TestManyNodesAreFewLines(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4")
	var nodes strings.Builder
	for i := range 40 {
		fmt.Fprintf(&nodes, "kind: Node\napiVersion: v1\nmetadata: {name: small-%02d}\nstatus: {allocatable: {cpu: %dm}}\n---\n", i, i/2)
	}
	testfiles.Write(t, filepath.Join(dir, "node.yaml"), nodes.String())
	_, stdout, _ := call("simulate", "-f", dir)
	for text, want := range map[string]int{
		"  small-00, small-01: the pod requests cpu 1, but the node has none\n": 1,
		"the pod requests": maxGroups,
		"  other nodes: 10 more reasons; -o json shows all of them\n": 1,
	} {
		if got := strings.Count(stdout, text); got != want {
			t.Errorf("%q is there %d times, want %d, in\n%s", text, got, want, stdout)
		}
	}
	if stdout := mustCall(t, "explain", "pod", "a", "-f", dir); strings.Count(stdout, "the pod requests") != maxGroups ||
		!strings.Contains(stdout, "\nThere are 10 more answers for other nodes; -o json shows all of them.\n") {
		t.Errorf("explain says\n%s", stdout)
	}
	if stdout := mustCall(t, "explain", "pod", "a", "-f", dir, "-o", "json"); strings.Count(stdout, `"node": "small-`) != 40 {
		t.Errorf("explain in JSON leaves nodes out")
	}
}
