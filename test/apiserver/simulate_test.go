package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/scenario"
)

// nobody is a scheduler that there is not: its pods wait until the test ends.
const nobody = "nobody"

// buildCLI returns kubectl-numa.
func buildCLI(t *testing.T) string {
	t.Helper()
	return build(t, "kubectl-numa", "KUBECTL_NUMA")
}

// TestSimulateOfTheClusterIsThatOfItsFiles: lists over the wire, in protobuf and
// with what the server fills in, and files of kubectl get say the same.
func TestSimulateOfTheClusterIsThatOfItsFiles(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	program := buildCLI(t)
	isOld := releaseOf(t, admin) == client.Release136
	for seed := range uint64(8) {
		made := scenario.New(fmt.Sprintf("live-%d", seed), seed+1)
		if isOld {
			made.TaintRules = nil
		}
		createScenario(t, admin, made)
	}
	dir := t.TempDir()
	kinds := []string{"deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates", "devicetaintrules"}
	if isOld {
		kinds = kinds[:4]
	}
	save(t, admin, dir, kinds)
	kubeconfig := "--kubeconfig=" + os.Getenv("APISERVER_KUBECONFIG")
	// The cluster's own gates are not all those of Kubernetes 1.37.
	files := simulation(t, program, "--filename", dir, "--feature-gates", "DRAFractionalCapacityRange=false")
	within(t, time.Second, func() string { // the server's memory follows its store
		cluster := simulation(t, program, "--from-cluster", kubeconfig)
		if diff := cmp.Diff(files, cluster); diff != "" || len(cluster) < 10 {
			return fmt.Sprintf("there are %d pods (-files +cluster):\n%s", len(cluster), diff)
		}
		return ""
	})
}

// simulation is what becomes of every pod of nobody, by name.
func simulation(t *testing.T, program string, args ...string) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, append([]string{"simulate", "--all-nodes", "-o", "json"}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var result simulate.Result
	if json.Unmarshal(stdout.Bytes(), &result) != nil {
		t.Fatalf("%s: %v\n%s", command, err, &stderr)
	}
	if note := "using the feature gates of Kubernetes"; strings.Contains(stderr.String(), note) {
		t.Errorf("%s: %s", command, &stderr)
	}
	outcomes := make(map[string]string)
	for _, pod := range result.Pods {
		text, _ := json.Marshal(pod)
		outcomes[pod.Pod] = string(text)
	}
	for _, pod := range result.Unschedulable {
		text, _ := json.Marshal(pod)
		outcomes[pod.Pod] = string(text)
	}
	return outcomes
}

func createScenario(t *testing.T, admin kubernetes.Interface, s scenario.Scenario) {
	t.Helper()
	resources := admin.ResourceV1()
	createAll(t, admin.CoreV1().Nodes(), s.Nodes)
	createAll(t, resources.DeviceClasses(), s.Classes)
	createAll(t, resources.ResourceSlices(), s.Slices)
	createAll(t, resources.ResourceClaimTemplates(s.Namespace), s.Templates)
	createAll(t, resources.ResourceClaims(s.Namespace), s.Claims)
	createAll(t, resources.DeviceTaintRules(), s.TaintRules)
	if err := s.CreateOthers(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	for _, pod := range s.Pods {
		pod.Spec.SchedulerName = nobody
	}
	createAll(t, admin.CoreV1().Pods(s.Namespace), s.Pods)
	for _, pod := range s.Pods {
		waitForClaims(t, admin, pod.Namespace, pod.Name)
	}
}

// waitForClaims waits until the claims of the pod's templates are made.
func waitForClaims(t *testing.T, admin kubernetes.Interface, namespace, name string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		pod, err := admin.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, entry := range pod.Spec.ResourceClaims {
			if entry.ResourceClaimTemplateName != nil {
				want++
			}
		}
		if len(pod.Status.ResourceClaimStatuses) >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("pod %s has %d of %d claims", name, len(pod.Status.ResourceClaimStatuses), want)
		}
	}
}

// releaseOf is the release of Kubernetes of an API server.
func releaseOf(t *testing.T, admin kubernetes.Interface) string {
	t.Helper()
	release, err := client.Release(admin.Discovery())
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// save writes the cluster's objects as kubectl get does, those of some kinds of DRA.
func save(t *testing.T, admin kubernetes.Interface, dir string, kinds []string) {
	t.Helper()
	rest := admin.CoreV1().RESTClient()
	for _, path := range []string{"api/v1/nodes", "api/v1/pods"} {
		saveList(t, dir, path, rest.Get().AbsPath(path).Do(t.Context()).Raw)
	}
	for _, kind := range kinds {
		path := "apis/resource.k8s.io/v1/" + kind
		saveList(t, dir, path, rest.Get().AbsPath(path).Do(t.Context()).Raw)
	}
}

func saveList(t *testing.T, dir, path string, raw func() ([]byte, error)) {
	t.Helper()
	text, err := raw()
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, filepath.Join(dir, filepath.Base(path)+".json"), string(text))
}
