package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/migration"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const resources = "resource.k8s.io/v1"

// listOf is a list in the form of the API server.
func listOf[T any](kind, apiVersion string, items []T) map[string]any {
	return map[string]any{"kind": kind, "apiVersion": apiVersion, "items": append([]T{}, items...)}
}

// answers are the answers of an API server, by path: texts, handlers, and values that are
// encoded as JSON.
type answers map[string]any

// testCluster answers as a cluster with the objects of a folder of files.
func testCluster(t *testing.T, dir string, metrics string) (kubeconfig string) {
	t.Helper()
	a := objectAnswers(t, dir)
	if metrics != "" {
		a["/metrics"] = metrics
	}
	return a.serve(t)
}

func objectAnswers(t *testing.T, dir string) answers {
	t.Helper()
	objects, err := files{dir}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return answers{
		"/api/v1/nodes":                                   listOf("NodeList", "v1", objects.Nodes),
		"/api/v1/pods":                                    listOf("PodList", "v1", objects.Pods),
		"/apis/resource.k8s.io/v1/deviceclasses":          listOf("DeviceClassList", resources, objects.Classes),
		"/apis/resource.k8s.io/v1/resourceslices":         listOf("ResourceSliceList", resources, objects.Slices),
		"/apis/resource.k8s.io/v1/resourceclaims":         listOf("ResourceClaimList", resources, objects.Claims),
		"/apis/resource.k8s.io/v1/resourceclaimtemplates": listOf("ResourceClaimTemplateList", resources, objects.Templates),
		"/apis/resource.k8s.io/v1/devicetaintrules":       listOf("DeviceTaintRuleList", resources, objects.TaintRules),
	}
}

// serve makes a kubeconfig with two contexts: "cluster", with namespace team, and
// "other", whose server does not answer. Paths without an answer are forbidden.
func (a answers) serve(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch answer := a[r.URL.Path].(type) {
		case http.Handler:
			answer.ServeHTTP(w, r)
		case string:
			fmt.Fprint(w, answer)
		case nil:
			if r.Method != http.MethodGet {
				t.Errorf("%s %s, want to read only", r.Method, r.URL)
			}
			if r.URL.Path == policiesPath || slices.ContainsFunc(migration.Resources(), func(o migration.Resource) bool {
				return r.URL.Path == "/apis/"+o.Group+"/"+o.Version
			}) { // everyone may ask, and most clusters have none
				http.NotFound(w, r)
				return
			}
			http.Error(w, `forbidden: User "ann" cannot get path "`+r.URL.Path+`"`, http.StatusForbidden)
		default:
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.ReplaceAll(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "URL"}}, {name: gone, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: cluster, context: {cluster: c, user: u, namespace: team}}, {name: other, context: {cluster: gone, user: u}}]
current-context: cluster
`, "URL", server.URL)
	testfiles.Write(t, kubeconfig, text)
	return kubeconfig
}

const gatesOn = "kubernetes_feature_enabled{name=\"DRAConsumableCapacity\",stage=\"BETA\"} 1\n"

const gatesOff = "kubernetes_feature_enabled{name=\"DRAConsumableCapacity\",stage=\"BETA\"} 0\n"

// A cluster and its files give the same answers.
func TestClusterSaysWhatItsFilesSay(t *testing.T) {
	dir := clusterFolder(t, "cpu: 4", "cpu: 6", "dra.numa/cpu: 2")
	t.Setenv("KUBECONFIG", testCluster(t, dir, gatesOn))
	for _, args := range []string{"simulate -o json --all-nodes", "explain pod default/b", "explain claim c -n default -o yaml"} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		wantCode, want, wantErr := call(strings.Fields(args + " -f " + dir)...)
		if diff := cmp.Diff(want, stdout); exitCode != wantCode || stderr != wantErr || diff != "" {
			t.Errorf("%s: exit code %d, want %d; stderr %q, want %q; stdout (-files +cluster):\n%s", args, exitCode, wantCode, stderr, wantErr, diff)
		}
	}
}

func TestFilesReplaceObjectsOfTheCluster(t *testing.T) {
	dir := clusterFolder(t, "cpu: 6", "cpu: 2")
	kubeconfig := testCluster(t, dir, gatesOn)
	smaller := file(t, "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {devices: {requests: "+
		"[{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 3}}}}]}}\n")
	var result simulate.Result
	stdout := mustCall(t, "simulate", "--kubeconfig", kubeconfig, "-n", "default", "--from-cluster", "-f", smaller, "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Pods) != 2 {
		t.Errorf("placed %+v, want the pod that fits with the file's claim, too", result.Pods)
	}
}

// The flag overrides the cluster's feature gates. If they cannot be read, a note says so.
func TestGatesAreTheClusters(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	off := strings.Replace(gatesOn, "} 1", "} 0", 1)
	for _, row := range []struct {
		metrics, args string
		exitCode      int
		stderr        string
	}{
		{gatesOn, "", exitDone, ""},
		{off, "", exitUsage, "kubectl-numa: error: the scheduler gives up on pod default/a because of node worker-1: " +
			"claim default/a, request zone: has capacity requests, but the DRAConsumableCapacity feature is disabled\n"},
		{off, "--feature-gates DRAConsumableCapacity=true", exitDone, ""},
		{"", "", exitDone, "kubectl-numa: note: using the feature gates of Kubernetes 1.37, because those of the cluster cannot be read; set --feature-gates if they differ: " +
			`get /metrics: forbidden: User "ann" cannot get path "/metrics"` + "\n"},
	} {
		exitCode, _, stderr := call(strings.Fields("simulate --kubeconfig " + testCluster(t, dir, row.metrics) + " " + row.args)...)
		if exitCode != row.exitCode || !strings.HasPrefix(stderr, row.stderr) || row.stderr == "" && stderr != "" {
			t.Errorf("metrics %q, %q: exit code %d, stderr %q, want %d and %q", row.metrics, row.args, exitCode, stderr, row.exitCode, row.stderr)
		}
	}
}

// The default namespace is that of the context, as for kubectl.
func TestNamespaceIsTheContexts(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	kubeconfig := testCluster(t, dir, gatesOn)
	_, _, stderr := call("explain", "pod", "a", "--kubeconfig", kubeconfig)
	if want := "kubectl-numa: error: there is no Pod team/a in the cluster\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
	if _, names, _ := call("__complete", "explain", "--kubeconfig", kubeconfig, "-n", "default", "pod", ""); names != "a\n:4\n" {
		t.Errorf("completion is %q", names)
	}
}

func TestClusterThatCannotBeReadIsOneLine(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	dir := clusterFolder(t)
	kubeconfig := testCluster(t, dir, gatesOn)
	for args, want := range map[string]string{
		"simulate": "no cluster is configured: there is no kubeconfig\n" +
			"kubectl-numa: hint: set --kubeconfig or KUBECONFIG, or name files with objects in --filename\n",
		"features":                          "no cluster is configured: there is no kubeconfig\nkubectl-numa: hint: set --kubeconfig or KUBECONFIG\n",
		"simulate --from-cluster -f " + dir: "no cluster is configured: there is no kubeconfig\nkubectl-numa: hint: ",
		"simulate --kubeconfig " + kubeconfig + " --context none":  "read kubeconfig: context \"none\" does not exist\n",
		"simulate --kubeconfig " + kubeconfig + " --context other": "read the cluster: list Nodes: Get \"http://127.0.0.1:1/api/v1/nodes?limit=500&resourceVersion=0\": dial tcp 127.0.0.1:1: connect: connection refused\n",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant exit code 2 and\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// A folder may be a link, as kubectl allows it.
func TestFolderMayBeALink(t *testing.T) {
	dir, link := clusterFolder(t, "cpu: 2"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, link + "/"} {
		if got := mustCall(t, "simulate", "-f", name, "-o", "jsonpath={.pods[*].pod}"); got != "default/a" {
			t.Errorf("of %s, simulate places %q", name, got)
		}
	}
}
