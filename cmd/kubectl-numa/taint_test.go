package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const drainRule = `apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata:
  name: drain-worker-1-numa-1
spec:
  deviceSelector:
    device: numa-1
    driver: dra.numa
    pool: worker-1
  taint:
    effect: NoSchedule
    key: dra.numa/drain
`

// The rule keeps new pods off the zone, whose pods are named.
func TestTaintDrainsAZone(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4", "cpu: 4", "cpu: 4")
	if placed := mustCall(t, "simulate", "-f", dir); !strings.Contains(placed, "worker-1/numa-1") {
		t.Fatalf("without a rule, no pod gets the zone:\n%s", placed)
	}
	rule := mustCall(t, "taint", "worker-1/numa-1", "-f", dir)
	if diff := cmp.Diff(drainRule, rule); diff != "" {
		t.Errorf("rule (-want +got):\n%s", diff)
	}
	testfiles.Write(t, filepath.Join(dir, "drain.yaml"), rule)
	exitCode, placed, _ := call("simulate", "-f", dir)
	if exitCode != exitFailed || strings.Contains(placed, "dra.numa/worker-1/numa-1") || !strings.Contains(placed, "dra.numa/worker-1/numa-3") {
		t.Errorf("simulate says\n%s", placed)
	}
	if shown := mustCall(t, "status", "-f", dir, "-o", "json"); !strings.Contains(shown, `"rule": "drain-worker-1-numa-1"`) {
		t.Errorf("status does not show the rule:\n%s", shown)
	}
}

func TestTaintNamesThePodsOfADevice(t *testing.T) {
	dir := clusterFolder(t)
	runningPods(t, dir)
	testfiles.Write(t, filepath.Join(dir, "gpus.yaml"), gpuManifests("{name: gpu-0}"))
	for args, want := range map[string]string{
		"worker-1/numa-1": "note: these pods use the devices and keep running: default/running-1\n",
		"worker-1/numa-1 dra.numa/worker-1/numa-3 --effect NoExecute": "note: Kubernetes will delete these pods, unless their claims tolerate the taint: default/running-1, default/running-3\n",
		"gpu.example.com/gpus/gpu-0 --effect NoExecute":               "",
	} {
		exitCode, stdout, stderr := call(strings.Fields("taint " + args + " -f " + dir)...)
		if exitCode != exitDone || strings.TrimPrefix(stderr, "kubectl-numa: ") != want || strings.Count(stdout, "kind: DeviceTaintRule\n") != len(strings.Split(strings.Split(args, " --")[0], " ")) {
			t.Errorf("taint %s: exit code %d, stderr %q, stdout\n%s", args, exitCode, stderr, stdout)
		}
		// The rules are valid objects, also for the older version.
		_, older, _ := call(strings.Fields("taint " + args + " --api-version v1beta2 --key example.com/Repair_1 --value 2026 -f " + dir)...)
		for _, text := range []string{stdout, older} {
			mustCall(t, "status", "-f", file(t, text))
		}
		if !strings.Contains(older, "apiVersion: resource.k8s.io/v1beta2\n") || !strings.Contains(older, "  name: example.com-repair-1-") {
			t.Errorf("of the older version:\n%s", older)
		}
	}
	if _, names, _ := call("__complete", "taint", "--kubeconfig", testCluster(t, dir, gatesOn), "worker-1/numa-1", ""); !strings.HasPrefix(names, "gpu.example.com/gpus/gpu-0\nworker-1/numa-0\n") {
		t.Errorf("completion is %q", names)
	}
}

// Kubernetes 1.36 has no v1, and the older versions are off by default.
func TestTaintPrintsTheVersionThatIsServed(t *testing.T) {
	const group = "/apis/resource.k8s.io/"
	dir := clusterFolder(t)
	a := objectAnswers(t, dir)
	for _, version := range []string{"v1", "v1beta2", "v1alpha3"} {
		a[group+version+"/devicetaintrules"] = http.NotFoundHandler()
	}
	const note = "kubectl-numa: note: the cluster serves no DeviceTaintRules, so it does not accept the rule: an administrator has to switch them on\n"
	t.Setenv("KUBECONFIG", a.serve(t))
	if exitCode, rule, stderr := call("taint", "worker-1/numa-1"); exitCode != exitDone || rule != drainRule || stderr != note {
		t.Errorf("no version: exit code %d, stderr %q, stdout\n%s", exitCode, stderr, rule)
	}
	older := strings.Replace(drainRule, "/v1\n", "/v1beta2\n", 1)
	testfiles.Write(t, filepath.Join(dir, "drain.yaml"), older)
	objects := objectAnswers(t, dir)
	a[group+"v1beta2/devicetaintrules"] = listOf("DeviceTaintRuleList", resources+"beta2", objects[group+"v1/devicetaintrules"].(map[string]any)["items"].([]*resourceapi.DeviceTaintRule))
	if diff := cmp.Diff(older, mustCall(t, "taint", "worker-1/numa-1")); diff != "" {
		t.Errorf("rule (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(drainRule, mustCall(t, "taint", "worker-1/numa-1", "--api-version", "v1")); diff != "" {
		t.Errorf("with --api-version (-want +got):\n%s", diff)
	}
	if shown := mustCall(t, "status", "-o", "json"); !strings.Contains(shown, `"rule": "drain-worker-1-numa-1"`) {
		t.Errorf("status does not show the rule:\n%s", shown)
	}
}

func TestTaintWithoutSense(t *testing.T) {
	dir := clusterFolder(t)
	for args, want := range map[string]string{
		"":                                    "no device is named: want NODE/DEVICE or DRIVER/POOL/DEVICE\n",
		"numa-1":                              `device "numa-1": want NODE/DEVICE or DRIVER/POOL/DEVICE` + "\n",
		"worker-1/":                           `device "worker-1/": want NODE/DEVICE or DRIVER/POOL/DEVICE` + "\n",
		"worker-1/numa-1 worker-1/numa-1":     `device "worker-1/numa-1" is named twice` + "\n",
		"worker-1/numa-9":                     "there is no device worker-1/numa-9 in the files\nkubectl-numa: hint: the pool has worker-1/numa-0, worker-1/numa-1, worker-1/numa-2, worker-1/numa-3\n",
		"worker-9/numa-1":                     "there is no device worker-9/numa-1 in the files\nkubectl-numa: hint: run kubectl numa status to see the devices of each node\n",
		"worker-1/numa-1 --key a/b/c":         `key "a/b/c": a valid label key must consist of `,
		"worker-1/numa-1 --value -":           `value "-": a valid label must be `,
		"worker-1/numa-1 --effect PreferNone": `invalid argument "PreferNone" for "--effect" flag: allowed are NoSchedule, NoExecute, None` + "\n",
	} {
		exitCode, stdout, stderr := call(strings.Fields("taint " + args + " -f " + dir)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) {
			t.Errorf("taint %s: exit code %d, stdout %q, stderr\n%swant\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}
