package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const staticKubelet = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\nmaxPods: 250\n"

// Files are written once, and never over others.
func TestMigrateWritesNoFileTwice(t *testing.T) {
	dir := t.TempDir()
	testfiles.Write(t, filepath.Join(dir, "old", "worker-1.yaml"), staticKubelet)
	args := []string{"migrate", "-f", filepath.Join(dir, "old"), "--write", filepath.Join(dir, "new")}
	if out := mustCall(t, args...); !strings.Contains(out, "may break") {
		t.Errorf("the plan is\n%s", out)
	}
	values := filepath.Join(dir, "new", "values.yaml")
	if text := testfiles.Read(t, values); !strings.Contains(text, "translate:") {
		t.Errorf("%s is\n%s", values, text)
	}
	if exitCode, _, stderr := call(args...); exitCode != exitUsage || !strings.Contains(stderr, values+" exists already") {
		t.Errorf("exit code %d, %s", exitCode, stderr)
	}
}

// Only all fields have those that have nothing to do with the driver; the others are counted.
func TestMigrateCountsUnrelatedFields(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worker-1.yaml")
	testfiles.Write(t, path, staticKubelet)
	if out := mustCall(t, "migrate", "-f", path); strings.Contains(out, "maxPods") || !strings.Contains(out, "nothing to do with the driver: 1;") {
		t.Errorf("the plan is\n%s", out)
	}
	if out := mustCall(t, "migrate", "-f", path, "-o", "wide"); !strings.Contains(out, "maxPods: 250") {
		t.Errorf("all of the plan is\n%s", out)
	}
}

// What cannot be read is no sign that there is nothing.
func TestMigrateSaysWhatAClusterDidNotTell(t *testing.T) {
	const hint = "kubectl-numa: hint: bind a role with the verb get on nodes/proxy, or give the configuration files of the kubelets with --filename\n"
	for _, row := range []struct {
		what           string
		change         func(a answers)
		stdout, stderr string
	}{
		{
			"no kubelet may be asked", func(a answers) { a["/api/v1/nodes/worker-1/proxy/configz"] = nil }, "",
			`the plan lacks the configuration of 2 of 2 kubelets: forbidden: User "ann" cannot get path "/api/v1/nodes/worker-1/proxy/configz" (get nodes worker-1)` + "\n" + hint,
		},
		{"one kubelet does not answer", func(a answers) {
			a["/api/v1/nodes/worker-2/proxy/configz"] = http.NotFoundHandler()
		}, "reservedSystemCPUs: 0-1", "the plan lacks the configuration of 1 of 2 kubelets: worker-2: the server could not find the requested resource (get nodes worker-2)\n" + hint},
		{"objects may not be listed", func(a answers) {
			a["/apis/intel.com/v1alpha1"] = `{"resources": [{"name": "rmdconfigs"}]}`
		}, "reservedSystemCPUs: 0-1", `the plan lacks rmdconfigs.intel.com: forbidden: User "ann" cannot get path "/apis/intel.com/v1alpha1/rmdconfigs"` + "\n"},
	} {
		a := installedCluster(t)
		a["/api/v1/nodes"] = listOf("NodeList", "v1", []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}})
		for _, node := range []string{"worker-1", "worker-2"} {
			a["/api/v1/nodes/"+node+"/proxy/configz"] = `{"kubeletconfig": {"reservedSystemCPUs": "0-1"}}`
		}
		row.change(a)
		t.Setenv("KUBECONFIG", a.serve(t))
		exitCode, stdout, stderr := call("migrate")
		if exitCode != exitUsage || stderr != "kubectl-numa: error: "+row.stderr || !strings.Contains(stdout, row.stdout) || row.stdout == "" && stdout != "" {
			t.Errorf("%s: exit code %d, stderr %q, want %q, stdout\n%s", row.what, exitCode, stderr, row.stderr, stdout)
		}
	}
}

// A cluster says what its files would say: kubelets, objects of operators, schedulers of pods.
func TestMigrateReadsACluster(t *testing.T) {
	a := installedCluster(t)
	a["/api/v1/nodes/worker-1/proxy/configz"] = `{"kubeletconfig": {"cpuManagerPolicy": "static", "topologyManagerPolicy": "restricted", "maxPods": 110}}`
	a["/apis/nodetopology.openshift.io/v1"] = `{"resources": [{"name": "numaresourcesschedulers"}]}`
	a["/apis/nodetopology.openshift.io/v1/numaresourcesschedulers"] = `{"kind": "NUMAResourcesSchedulerList", "apiVersion": "nodetopology.openshift.io/v1", "items": [
		{"kind": "NUMAResourcesScheduler", "apiVersion": "nodetopology.openshift.io/v1", "metadata": {"name": "s"}, "spec": {"schedulerName": "own"}}]}`
	a["/api/v1/nodes"] = listOf("NodeList", "v1", []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}})
	a["/api/v1/pods"] = listOf("PodList", "v1", []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "team"}, Spec: corev1.PodSpec{SchedulerName: "own"}}})
	t.Setenv("KUBECONFIG", a.serve(t))
	out := mustCall(t, "migrate")
	for _, want := range []string{"KubeletConfiguration worker-1, cpuManagerPolicy: static", "Pod team/a, spec.schedulerName: own", "NUMAResourcesScheduler s, spec.schedulerName: own", "policy: restricted"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// What a terminal would obey is shown.
func TestMigrateShowsHostileText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hostile.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n\"\\e[2J\\nowned: x\": \"\\e[8m\\nowned: y\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "json", "yaml"} {
		_, stdout, stderr := call("migrate", "-f", path, "-o", format)
		if fault := object.PrintFault(stdout + stderr); fault != "" {
			t.Error(fault)
		}
	}
}
