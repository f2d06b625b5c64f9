package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const secret = "hunter2"

// installed is a node with a daemon as the chart installs it, and another pod. Secrets
// are in all places where people put them.
const installed = `
apiVersion: v1
kind: Pod
metadata:
  name: driver-x
  namespace: dra-numa
  labels: {app.kubernetes.io/part-of: dra-driver-numa, app.kubernetes.io/component: daemon}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: dra-driver-numa, uid: set, controller: true}]
spec: {nodeName: worker-1, containers: [{name: driver, image: "d:1", env: [{name: X, value: hunter2}]}]}
status:
  conditions: [{type: Ready, status: "True"}]
  containerStatuses:
  - name: driver
    ready: true
    restartCount: 1
    image: 'd:1'
    imageID: x
    state: {running: {}}
    lastState: {terminated: {exitCode: 1, message: was killed}}
---
apiVersion: v1
kind: Pod
metadata: {name: app, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2}}
spec:
  nodeName: worker-1
  volumes: [{name: v, csi: {driver: d, volumeAttributes: {password: hunter2}}}]
  initContainers: [{name: init, command: [sh, -c, "login hunter2"]}]
  containers:
  - name: main
    image: 'a:1'
    args: ['--password=hunter2']
    env: [{name: PASSWORD, value: hunter2}]
    livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: A, value: hunter2}]}}
status:
  containerStatuses:
  - name: main
    ready: true
    restartCount: 0
    image: a
    imageID: a
    lastState: {terminated: {exitCode: 1, message: hunter2 refused}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests: [{name: gpu, exactly: {deviceClassName: gpu}}]
    config: [{opaque: {driver: gpu.example.com, parameters: {token: hunter2}}}]
`

const daemonSet = `
metadata: {name: dra-driver-numa, namespace: dra-numa, uid: set, annotations: {meta.helm.sh/x: hunter2}}
spec:
  selector: {}
  template:
    spec:
      serviceAccountName: dra-driver-numa
      containers:
      - name: driver
        image: 'd:1'
        args: ['--exclusivity=auto', '--kubelet-config=/x']
        env: [{name: X, value: hunter2}]
status: {desiredNumberScheduled: 1, currentNumberScheduled: 1}
`

// installedCluster answers as a cluster without problems.
func installedCluster(t *testing.T) answers {
	t.Helper()
	dir := clusterFolder(t, "cpu: 2")
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: worker-1}\nstatus: {allocatable: {cpu: 16, memory: 4Gi, pods: 110}, nodeInfo: {kubeletVersion: v1.37.1}}\n"
	for name, text := range map[string]string{"node.yaml": node, "installed.yaml": installed} {
		testfiles.Write(t, filepath.Join(dir, name), text)
	}
	classes, err := filepath.Glob("../../deviceclasses/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range classes {
		if name := filepath.Base(class); name != "zone.dra.numa.yaml" { // the folder has it
			testfiles.Write(t, filepath.Join(dir, name), testfiles.Read(t, class))
		}
	}
	set := &appsv1.DaemonSet{}
	if err := yaml.UnmarshalStrict([]byte(daemonSet), set); err != nil {
		t.Fatal(err)
	}
	role, binding := &rbacv1.ClusterRole{Rules: diagnosis.Rights()}, &rbacv1.ClusterRoleBinding{}
	role.Name, binding.RoleRef = "r", rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}
	binding.Subjects = []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "dra-numa", Name: "dra-driver-numa"}}
	config := &corev1.ConfigMap{Data: map[string]string{"node.yaml": "kind: NodeConfig\nreservedCPUs: 0-1\n", "token": secret}}
	event := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "worker-1"}, Message: "ready"}
	a := objectAnswers(t, dir)
	for path, answer := range (answers{
		"/metrics":                             gatesOn,
		"/apis/policy/v1/poddisruptionbudgets": listOf("PodDisruptionBudgetList", "policy/v1", []any{}),
		"/version":                             map[string]string{"gitVersion": "v1.37.1"},
		"/api/v1/namespaces/dra-numa":          &corev1.Namespace{},
		"/apis/apps/v1/namespaces/dra-numa/daemonsets":  listOf("DaemonSetList", "apps/v1", []*appsv1.DaemonSet{set}),
		"/apis/apps/v1/namespaces/dra-numa/deployments": listOf("DeploymentList", "apps/v1", []*appsv1.Deployment{}),
		"/api/v1/events":                                         listOf("EventList", "v1", []*corev1.Event{event}),
		"/api/v1/nodes/worker-1/proxy/configz":                   `{"kubeletconfig": {"cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "staticPodURLHeader": {"X": ["hunter2"]}}}`,
		"/apis/rbac.authorization.k8s.io/v1/clusterroles":        listOf("ClusterRoleList", "rbac.authorization.k8s.io/v1", []*rbacv1.ClusterRole{role}),
		"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": listOf("ClusterRoleBindingList", "rbac.authorization.k8s.io/v1", []*rbacv1.ClusterRoleBinding{binding}),
		"/api/v1/namespaces/dra-numa/pods/driver-x/log":          "Publishing zones\n",
		"/api/v1/namespaces/dra-numa/pods/driver-x/exec":         stateOf(nothing),
		"/api/v1/namespaces/dra-numa/configmaps":                 listOf("ConfigMapList", "v1", []*corev1.ConfigMap{config}),
	}) {
		a[path] = answer
	}
	return a
}

func TestValidateFindsNothingInAHealthyCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	if stdout := mustCall(t, "validate"); stdout != noProblems {
		t.Errorf("validate says\n%s", stdout)
	}
	for format, want := range map[string]string{"json": "\n  \"items\": []\n}\n", "yaml": "\nitems: []\n"} {
		if stdout := mustCall(t, "validate", "-o", format); !strings.HasSuffix(stdout, want) {
			t.Errorf("validate -o %s says %q", format, stdout)
		}
	}
}

// validate reports what the user may not read, and checks the rest.
func TestValidateSaysWhatItMayNotRead(t *testing.T) {
	a := installedCluster(t)
	a["/api/v1/nodes/worker-1/proxy/configz"] = nil
	a["/metrics"] = gatesOff
	t.Setenv("KUBECONFIG", a.serve(t))
	const want = `NODE  CHECK          COMPONENT       SETTING                EXPECTED  DETECTED
-     not-permitted  kubelet         configz                readable  forbidden: User "ann" cannot get path "/api/v1/nodes/worker-1/proxy/configz" (get nodes worker-1)
-     feature-gate   kube-apiserver  DRAConsumableCapacity  true      false
`
	const wantError = "kubectl-numa: error: found 1 problem\n"
	exitCode, stdout, stderr := call("validate")
	if diff := cmp.Diff(want, stdout); exitCode != exitFailed || stderr != wantError || diff != "" {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", exitCode, stderr, diff)
	}
	_, stdout, _ = call("validate", "-o", "json")
	var findings struct{ Items []map[string]string }
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil {
		t.Fatal(err)
	}
	first := map[string]string{
		"node": "", "area": "versions", "check": "feature-gate", "component": "kube-apiserver",
		"setting": "DRAConsumableCapacity", "expected": "true", "detected": "false",
	}
	if diff := cmp.Diff(first, findings.Items[1]); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

// Users who are no administrators may not read everything.
func TestWhatOneMayNotReadIsExitCode0(t *testing.T) {
	a := installedCluster(t)
	a["/api/v1/nodes/worker-1/proxy/configz"] = nil
	t.Setenv("KUBECONFIG", a.serve(t))
	if stdout := mustCall(t, "validate"); !strings.Contains(stdout, "not-permitted") {
		t.Errorf("validate says\n%s", stdout)
	}
}

// No command needs what gather leaves out.
func TestEveryCommandSaysOfABundleWhatItSaysOfTheCluster(t *testing.T) {
	a := installedCluster(t)
	a["/metrics"] = strings.Replace(gatesOn, "DRAConsumableCapacity", "Another", 1)
	a["/apis/apps/v1/namespaces/dra-numa/deployments"] = nil
	a["/apis/apps/v1/namespaces/dra-numa/daemonsets"] = listOf("DaemonSetList", "apps/v1", []*appsv1.DaemonSet{})
	t.Setenv("KUBECONFIG", a.serve(t))
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	exitCode, stdout, stderr := call("gather", "--file", file)
	if exitCode != exitDone || stdout != file+"\n" || !strings.Contains(stderr, "note: the bundle lacks Deployments: ") {
		t.Fatalf("gather: exit code %d, stdout %q, stderr %q", exitCode, stdout, stderr)
	}
	for _, args := range []string{"validate", "drift", "drift worker-1 -o json", "simulate", "explain pod default/a", "explain claim default/gpu -o yaml", "translate -o jsonpath={.items[*].name}:{.items[*].why}"} {
		wantCode, want, wantErr := call(strings.Fields(args)...)
		exitCode, stdout, stderr := call(strings.Fields(args + " --from " + file)...)
		if diff := cmp.Diff(want, stdout); exitCode != wantCode || stderr != wantErr || diff != "" {
			t.Errorf("%s: exit code %d, want %d; stderr %q, want %q; stdout (-cluster +bundle):\n%s", args, exitCode, wantCode, stderr, wantErr, diff)
		}
	}
}

func TestNonsenseOfBundlesIsOneLine(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	noBundle := file(t, "kind: Node")
	for args, want := range map[string]string{
		"validate --from /no/such":         "--from: open /no/such: no such file or directory",
		"validate --from " + noBundle:      `--from "` + noBundle + `": unpack: gzip: invalid header`,
		"simulate --from x --from-cluster": "--from reads a bundle, and --from-cluster reads a cluster: set only one of them",
		"simulate --from x --context y":    "--context is for a cluster, but no cluster is read: ",
		"gather --file " + noBundle:        "--file: open " + noBundle + ": file exists",
		"gather --context none":            `read kubeconfig: context "none" does not exist`,
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// Only the nodes know whether the container runtime offers NRI and irqbalance runs.
func TestValidateAsksTheNodes(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(`{"host": {"nri": false, "irqbalance": "system.slice/irqbalance.service"}}`)
	t.Setenv("KUBECONFIG", a.serve(t))
	if stdout := mustCall(t, "validate"); stdout != noProblems {
		t.Errorf("without --ask-nodes, validate says\n%s", stdout)
	}
	const want = `NODE      CHECK       COMPONENT          SETTING                    EXPECTED                                                                                             DETECTED
worker-1  nri         container runtime  NRI                        on, because nri.enabled is set in the chart: mixed and shared claims and memoryPolicy need it  no socket nri.sock
worker-1  irqbalance  irqbalance         IRQBALANCE_BANNED_CPULIST  the CPUs that claims may get, or no irqbalance                                                not visible; irqbalance runs in the cgroup system.slice/irqbalance.service
`
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	testfiles.Write(t, path, string(gather(t, time.Now())))
	for _, args := range []string{"validate --ask-nodes", "validate --from " + path} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if diff := cmp.Diff(strings.Fields(want), strings.Fields(stdout)); exitCode != exitFailed || stderr != "kubectl-numa: error: found 1 problem\n" || diff != "" {
			t.Errorf("%s: exit code %d, stderr %q (-want +got):\n%s", args, exitCode, stderr, diff)
		}
	}
	a[pod] = annMayNot()
	for args, want := range map[string]string{
		"validate --ask-nodes --from " + path: "kubectl-numa: error: --ask-nodes: a bundle has the answers of the nodes, want a cluster without --from\n",
		"validate --ask-nodes":                "",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if stderr != want || (exitCode == exitUsage) != (want != "") || want == "" && !strings.Contains(stdout, "not-permitted  dra-driver-numa  state of the node") {
			t.Errorf("%s: exit code %d, stdout\n%sstderr %q, want %q", args, exitCode, stdout, stderr, want)
		}
	}
}
