package apiserver

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// patience is when a test gives up, also on a slow host. No test waits that long for
// what it expects.
const patience = 3 * time.Minute

// daemon is the daemon's plugin and what it is made of.
type daemon struct {
	*kubeletplugin.Plugin
	core      *driver.Driver
	readiness *kubeletplugin.Readiness
	dir       string // of its socket
}

// startPlugin runs the daemon's plugin for a new Node of that name with the
// rig's machine, as the given client, until the test ends. The kubelet's root
// directory, which is also the driver's, is a folder that may be empty.
func startPlugin(t *testing.T, admin, api kubernetes.Interface, node, kubeletRoot string) daemon {
	t.Helper()
	createNode(t, admin, node)
	return servePlugin(t, api, node, kubeletRoot, func(err error) { t.Errorf("plugin cannot go on: %v", err) })
}

// servePlugin is startPlugin for a Node that there is.
func servePlugin(t *testing.T, api kubernetes.Interface, node, kubeletRoot string, fatal func(error)) daemon {
	t.Helper()
	keep(t, kubeletRoot, testBoot)
	config := driver.Config{NodeName: node, BootID: testBoot, Exclusivity: driver.ExclusivityKernel}
	d := daemon{readiness: &kubeletplugin.Readiness{}, dir: t.TempDir()}
	var err error
	if d.core, err = driver.Open(rigMachine(), config, files.OpenTemp(t), files.OpenTemp(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.core.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	d.Plugin, err = kubeletplugin.Start(t.Context(), d.core, kubeletplugin.Options{
		Client:      api,
		PluginDir:   d.dir,
		RegistryDir: t.TempDir(),
		CDIDir:      t.TempDir(),
		State:       files.Open(t, kubeletRoot),
		Readiness:   d.readiness,
		Fatal:       fatal,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return d
}

const testBoot = "test"

// keep tells the daemon which policies the kubelet's managers have, as the keeper does.
func keep(t *testing.T, root, boot string) {
	t.Helper()
	files.Write(t, filepath.Join(root, keeperfile.PoliciesName), string(keeperfile.ReadPolicies(os.DirFS(root), boot).Encode()))
}

// createNode makes a Node until the test ends.
func createNode(t *testing.T, admin kubernetes.Interface, node string) {
	t.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeNode(t, admin, node) })
}

// removeNode removes the Node, its slices and events; the test's own context has ended.
func removeNode(t *testing.T, admin kubernetes.Interface, node string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	own := metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + node}
	if err := admin.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, own); err != nil {
		t.Errorf("delete slices of %s: %v", node, err)
	}
	about := metav1.ListOptions{FieldSelector: "involvedObject.uid=" + node}
	if err := admin.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, about); err != nil {
		t.Errorf("delete events of %s: %v", node, err)
	}
	if err := admin.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		t.Errorf("delete node %s: %v", node, err)
	}
}

// readyz asks the plugin as a probe does, until the answer has the wanted
// status and text or the wait is over, and returns the last answer.
func readyz(plugin daemon, wait time.Duration, status int, text string) (answer string, ok bool) {
	for deadline := time.Now().Add(wait); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		recorder := httptest.NewRecorder()
		plugin.readiness.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		answer = recorder.Body.String()
		if recorder.Code == status && strings.Contains(answer, text) {
			return answer, true
		}
	}
	return answer, false
}

// nodeSlices returns all slices of a node, also those of other drivers.
func nodeSlices(t *testing.T, admin kubernetes.Interface, node string) []resourceapi.ResourceSlice {
	t.Helper()
	own := metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorNodeName + "=" + node}
	list, err := admin.ResourceV1().ResourceSlices().List(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func nodeDevices(t *testing.T, admin kubernetes.Interface, node string) (devices []resourceapi.Device) {
	t.Helper()
	for _, slice := range nodeSlices(t, admin, node) {
		devices = append(devices, slice.Spec.Devices...)
	}
	return devices
}

// The garbage collector deletes slices whose owner is a Node of before. A daemon goes on creating
// them: it has to end.
func TestNodeThatIsRegisteredAgain(t *testing.T) {
	const node = "registered-again"
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	createNode(t, admin, node)
	root, ends := t.TempDir(), make(chan error, 1)
	first := servePlugin(t, admin, node, root, func(err error) {
		select {
		case ends <- err:
		default:
		}
	})
	if answer, ready := readyz(first, patience, http.StatusOK, "ok"); !ready {
		t.Fatalf("readyz = %q", answer)
	}
	nodes := admin.CoreV1().Nodes()
	if err := nodes.Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ends:
		if want := "node " + node + " was deleted"; !strings.Contains(err.Error(), want) {
			t.Errorf("the daemon ends with %v, want %q", err, want)
		}
	case <-time.After(patience):
		t.Fatal("the daemon does not end")
	}
	first.Stop()
	second := servePlugin(t, admin, node, root, func(err error) { t.Errorf("the next daemon cannot go on: %v", err) })
	if answer, ready := readyz(second, patience, http.StatusOK, "ok"); !ready {
		t.Fatalf("readyz = %q", answer)
	}
	stored := nodeSlices(t, admin, node)
	if len(stored) != 1 || len(stored[0].OwnerReferences) != 1 || stored[0].OwnerReferences[0].UID != again.UID {
		t.Fatalf("slices are %+v, want one of Node %s", stored, again.UID)
	}
	time.Sleep(10 * time.Second) // of the garbage collector
	if now := nodeSlices(t, admin, node); len(now) != 1 || now[0].UID != stored[0].UID {
		t.Errorf("slices are %+v by now, want the same one", now)
	}
}

// TestGateOffIsNotReadyAndNamed: with the gate off the server drops capacity
// policies, and every claim would get a whole zone.
func TestGateOffIsNotReadyAndNamed(t *testing.T) {
	admin := clientFor(t, "GATES_OFF_KUBECONFIG")
	plugin := startPlugin(t, admin, admin, "gate-off", t.TempDir())
	answer, named := readyz(plugin, patience, http.StatusServiceUnavailable, "DRAConsumableCapacity")
	if !named {
		t.Fatalf("readyz = %q, want 503 and the gate's name", answer)
	}
	if strings.Count(strings.TrimSpace(answer), "\n") != 0 {
		t.Errorf("readyz = %q, want one line", answer)
	}
	// It stays so, with nothing half-published.
	if answer, ready := readyz(plugin, 2*time.Second, http.StatusOK, ""); ready {
		t.Errorf("readyz = %q later", answer)
	}
	if devices := nodeDevices(t, admin, "gate-off"); len(devices) != 0 {
		t.Errorf("%d devices are published", len(devices))
	}
	sameEvents(t, admin, "gate-off", "Warning NUMADriverNotReady "+strings.TrimSpace(answer))
}

// TestChartGrantsWhatTheDaemonNeeds installs the chart as users do and
// publishes with nothing but the rights of its service account.
func TestChartGrantsWhatTheDaemonNeeds(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t)
	api := asDaemon(t, "chart-rights")
	plugin := startPlugin(t, admin, api, "chart-rights", t.TempDir())
	if answer, ready := readyz(plugin, patience, http.StatusOK, "ok"); !ready {
		t.Fatalf("readyz = %q, want ok", answer)
	}
	want := driver.Devices(rigMachine(), driver.Config{Exclusivity: driver.ExclusivityKernel}, nil)
	if diff := cmp.Diff(want, nodeDevices(t, admin, "chart-rights")); diff != "" {
		t.Errorf("devices (-sent +kept):\n%s", diff)
	}
	// What the helper does for a claim, and something it never does.
	_, err := api.ResourceV1().ResourceClaims("default").Get(t.Context(), "absent", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("get a claim: %v, want not found", err)
	}
	_, err = api.CoreV1().Secrets("dra-numa").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v, want forbidden", err)
	}
}

// chartFolder is the chart of the driver.
const chartFolder = "../../deployments/helm/dra-driver-numa"

// helm runs Helm, and returns what it prints on standard output.
func helm(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := tryHelm(ctx, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s%s", args[0], err, stdout, stderr)
	}
	return stdout
}

// tryHelm runs the program that HELM names, else that of the tools module, for the API server
// under test.
func tryHelm(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	program := []string{"go", "tool", "-modfile=../../tools/go.mod", "helm"}
	if path := os.Getenv("HELM"); path != "" {
		program = []string{path}
	}
	command := exec.CommandContext(ctx, program[0], append(program[1:], args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+os.Getenv("APISERVER_KUBECONFIG"))
	var out, faults strings.Builder
	command.Stdout, command.Stderr = &out, &faults
	err = command.Run()
	return out.String(), faults.String(), err
}

// installChart installs the chart, classes included, for the rest of the test.
func installChart(t *testing.T, set ...string) {
	t.Helper()
	installAs(t, "dra-driver-numa", "dra-numa", set...)
}

// installAs is installChart for a release of any name, in any namespace.
func installAs(t *testing.T, release, namespace string, set ...string) {
	t.Helper()
	helm(t.Context(), t, installArgs(release, namespace, set...)...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		helm(ctx, t, "uninstall", release, "--namespace", namespace, "--ignore-not-found", "--no-hooks") // no node runs them
	})
}

func installArgs(release, namespace string, set ...string) []string {
	args := []string{"upgrade", "--install", release, chartFolder, "--namespace", namespace, "--create-namespace"}
	for _, value := range set {
		args = append(args, "--set", value)
	}
	return args
}

// asDaemon returns a client that acts as the chart's service account on a node.
func asDaemon(t *testing.T, node string) kubernetes.Interface {
	t.Helper()
	return as(t, "dra-driver-numa", map[string][]string{"authentication.kubernetes.io/node-name": {node}})
}

// as returns a client that acts as a service account of the chart's namespace.
func as(t *testing.T, account string, extra map[string][]string) kubernetes.Interface {
	t.Helper()
	return asUser(t, rest.ImpersonationConfig{
		UserName: "system:serviceaccount:dra-numa:" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:dra-numa", "system:authenticated"},
		Extra:    extra,
	})
}

func asUser(t *testing.T, user rest.ImpersonationConfig) kubernetes.Interface {
	t.Helper()
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = user
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}
