package main

import (
	"bytes"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// gather runs the command at the given time, and returns the file that it wrote.
func gather(t *testing.T, now time.Time) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	var stdout, stderr bytes.Buffer
	g := gathering{cli: cli{name: program, stdout: &stdout, stderr: &stderr}, file: name}
	if err := g.run(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unpacked are the names of the files, and all their text.
func unpacked(t *testing.T, archive []byte) (names []string, text string) {
	t.Helper()
	for _, file := range testfiles.Unpack(t, archive) {
		names = append(names, file.Name)
		text += file.Text
	}
	return names, text
}

// The objects of the cluster have a secret in many places. The bundle has none of them,
// but everything that a diagnosis needs.
func TestBundleHasNoSecrets(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	now := time.Date(2026, 11, 21, 12, 0, 0, 123, time.UTC)
	bundle := gather(t, now)
	names, text := unpacked(t, bundle)
	want := []string{
		"index.json", "configs/worker-1.yaml", "events.json", "installation.json", "kubelets.json", "logs/dra-numa/driver-x/driver.log", "logs/dra-numa/driver-x/driver.previous.log", "machines/worker-1.tar.gz", "nodes/worker-1.json",
		"objects/deviceclasses.json", "objects/devicetaintrules.json", "objects/nodes.json", "objects/poddisruptionbudgets.json", "objects/pods.json",
		"objects/resourceclaims.json", "objects/resourceclaimtemplates.json", "objects/resourceslices.json",
		"versions.json",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if i := strings.Index(text, secret); i >= 0 {
		t.Errorf("the secret is in it: %s", text[max(0, i-200):i+20])
	}
	for _, part := range []string{"was killed", "Publishing zones", "--exclusivity=auto", `"featureGates"`, `"kubernetes": "v1.37.1"`, `"worker-1"`, "reservedCPUs: 0-1", `"settled": false`, "kind: EffectiveConfig", `"client": "dev"`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in it", part)
		}
	}
	if !bytes.Equal(bundle, gather(t, now.Add(100))) {
		t.Error("of the same cluster at the same second there is another bundle")
	}
}

// Users can unpack a bundle, change an object, and use the folder.
func TestUnpackedBundleIsAFolderOfFiles(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	dir := t.TempDir()
	for _, file := range testfiles.Unpack(t, gather(t, time.Now())) {
		if name, is := strings.CutPrefix(file.Name, "objects/"); is {
			testfiles.Write(t, filepath.Join(dir, name), file.Text)
		}
	}
	if got, want := mustCall(t, "simulate", "-f", dir), mustCall(t, "simulate"); got != want {
		t.Errorf("simulate says\n%swant\n%s", got, want)
	}
}

// The control plane's arguments are not in a bundle, except those that set feature gates.
func TestBundleHasTheGatesOfTheControlPlane(t *testing.T) {
	a := installedCluster(t)
	scheduler := &corev1.Pod{}
	scheduler.Name, scheduler.Namespace, scheduler.Labels = "kube-scheduler-a", "kube-system", map[string]string{"component": "kube-scheduler"}
	scheduler.Spec.NodeName = "control-plane"
	scheduler.Spec.Containers = []corev1.Container{{
		Name: "kube-scheduler", Command: []string{"kube-scheduler", "--password=" + secret, "--feature-gates", "DRAConsumableCapacity=false"},
	}}
	pods := a["/api/v1/pods"].(map[string]any)
	pods["items"] = append(pods["items"].([]*corev1.Pod), scheduler)
	t.Setenv("KUBECONFIG", a.serve(t))
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	archive := gather(t, time.Now())
	testfiles.Write(t, path, string(archive))
	if _, text := unpacked(t, archive); strings.Contains(text, secret) {
		t.Error("the secret is in it")
	}
	const want = "-     control-plane-gate  Pod kube-system/kube-scheduler-a  DRAConsumableCapacity  true, as in the API server  false\n"
	for _, args := range []string{"validate", "validate --from " + path} {
		if _, stdout, _ := call(strings.Fields(args)...); !strings.HasSuffix(stdout, want) {
			t.Errorf("%s says\n%swant\n%s", args, stdout, want)
		}
	}
	if stdout := mustCall(t, "features", "--from", path); !strings.Contains(stdout, "DRAConsumableCapacity is off in kube-scheduler") || strings.Contains(stdout, "not visible") {
		t.Errorf("features says\n%s", stdout)
	}
}

// An interrupted gather leaves no file, so the same command can be repeated.
func TestInterruptedGatherLeavesNoFile(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt) // without this, the test would end if gather did not catch it
	defer signal.Stop(signals)
	a := installedCluster(t)
	a["/api/v1/namespaces/dra-numa/pods/driver-x/log"] = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(os.Interrupt)
		}
		if err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	})
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	exitCode, stdout, stderr := call("gather", "--file", path, "--kubeconfig", a.serve(t))
	if exitCode != exitFailed || stdout != "" || stderr != "kubectl-numa: error: read the cluster: interrupt signal received\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", exitCode, stdout, stderr)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}
