package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The flags have one meaning and one form in all commands.
func TestFlagsOfListsAreTheSameEverywhere(t *testing.T) {
	eachCommand(func(command *cobra.Command) {
		path := pathOf(command)
		for name, want := range map[string]struct{ shorthand, args, err string }{
			"selector":       {"l", "--selector a=b=c", `invalid argument "a=b=c" for "-l, --selector" flag: want labels such as pool=batch,tier!=test: found '=', expected: ',' or 'end of string'`},
			"all-namespaces": {"A", "-A -n team", "--namespace team and --all-namespaces contradict each other: set only one of them"},
			"namespace":      {"n", "", ""},
		} {
			flag := command.Flags().Lookup(name)
			if flag == nil {
				continue
			}
			if flag.Shorthand != want.shorthand {
				t.Errorf("%s: --%s has the short form %q", path, name, flag.Shorthand)
			}
			if want.args == "" {
				continue
			}
			exitCode, stdout, stderr := call(strings.Fields(path + " " + want.args)...)
			if exitCode != exitUsage || stdout != "" || stderr != "kubectl-numa: error: "+want.err+"\n" {
				t.Errorf("%s %s: exit code %d, stdout %q, stderr %q", path, want.args, exitCode, stdout, stderr)
			}
		}
	})
}

// waitingPods is a cluster with waiting pods of two namespaces. That of namespace a is
// first.
func waitingPods(t *testing.T) (dir string) {
	t.Helper()
	dir = clusterFolder(t)
	for _, pod := range []struct{ file, namespace, name, labels string }{
		{"1", "a", "first", "{app: x}"}, {"2", "b", "second", "{app: x}"}, {"3", "b", "third", "{app: w}"},
	} {
		testfiles.Write(t, filepath.Join(dir, "pod-"+pod.file+".yaml"), podWith(pod.namespace, pod.labels, pod.name))
	}
	return dir
}

// podWith is a pod that waits for 4 CPUs, and its claim.
func podWith(namespace, labels, name string) string {
	meta := "metadata: {namespace: " + namespace + ", labels: " + labels + ", name: NAME"
	return strings.NewReplacer("NAME", name, "AMOUNTS", "cpu: 4").Replace(strings.ReplaceAll(podManifest, "metadata: {name: NAME", meta))
}

// simulate places all pods, and shows those that were asked for.
func TestSimulateListsSomePods(t *testing.T) {
	dir := waitingPods(t)
	for args, want := range map[string]string{
		"":                 "a/first on numa-1, b/second on numa-2, b/third on numa-3",
		"-A":               "a/first on numa-1, b/second on numa-2, b/third on numa-3",
		"-n b":             "b/second on numa-2, b/third on numa-3",
		"-l app=x":         "a/first on numa-1, b/second on numa-2",
		"-l app!=x -n b":   "b/third on numa-3",
		"-l app -n a":      "a/first on numa-1",
		"-l app=z -o wide": "",
		"-n other":         "",
	} {
		exitCode, stdout, stderr := call(strings.Fields("simulate --no-headers -f " + dir + " " + args)...)
		var got []string
		for line := range strings.Lines(stdout) {
			columns := strings.Fields(line)
			got = append(got, columns[0]+" on "+filepath.Base(columns[4]))
		}
		if strings.Join(got, ", ") != want || exitCode != exitDone || (stderr == "") != (want != "") {
			t.Errorf("simulate %s: exit code %d, stderr %q, placed %q, want %q", args, exitCode, stderr, got, want)
		}
	}
	if _, _, stderr := call("simulate", "-f", dir, "-n", "other", "-l", "app=x"); stderr != `kubectl-numa: note: no pod in namespace other with the labels "app=x" waits for a node`+"\n" {
		t.Errorf("stderr %q", stderr)
	}
}

// The exit code is about the pods that are shown.
func TestExitCodeIsAboutTheListedPods(t *testing.T) {
	dir := waitingPods(t)
	testfiles.Write(t, filepath.Join(dir, "pod-4.yaml"), strings.NewReplacer("{name: NAME}", "{namespace: b, name: large}", "NAME", "large", "AMOUNTS", "cpu: 9").Replace(podManifest))
	if exitCode, _, stderr := call("simulate", "-f", dir, "-n", "b"); exitCode != exitFailed || !strings.HasPrefix(stderr, "kubectl-numa: error: 1 of 3 pods have no node\n") {
		t.Errorf("exit code %d, stderr %q", exitCode, stderr)
	}
	mustCall(t, "simulate", "-f", dir, "-n", "a")
}

// Objects of files that name no namespace are in that of kubectl apply.
func TestNamespaceOfObjectsThatNameNone(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	cluster := " --from-cluster --kubeconfig " + testCluster(t, clusterFolder(t), gatesOn) + " -f " + filepath.Join(dir, "pod-a.yaml")
	for args, want := range map[string]string{
		"-f " + dir: "default/a", "-n other -f " + dir: "other/a",
		cluster: "team/a", "-n other" + cluster: "other/a", "-n default" + cluster: "default/a", // the context has the namespace team
	} {
		if got := mustCall(t, append(strings.Fields("simulate -o jsonpath={.pods[*].pod}"), strings.Fields(args)...)...); got != want {
			t.Errorf("simulate %s places %q, want %q", args, got, want)
		}
		if text := mustCall(t, append(strings.Fields("explain pod a"), strings.Fields(args)...)...); !strings.HasPrefix(text, want+": fits on 1 of 1 nodes") {
			t.Errorf("explain pod a %s says\n%s", args, text)
		}
	}
}

// Nodes, and the claims on them, are chosen by name, by labels and by namespace.
func TestStatusOfAPart(t *testing.T) {
	dir := showcase(t)
	testfiles.Write(t, filepath.Join(dir, "labelled.json"), `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-6", "labels": {"pool": "batch"}}}`)
	of := func(args ...string) (cluster holdings.Cluster) {
		t.Helper()
		if err := json.Unmarshal([]byte(mustCall(t, append([]string{"status", "-f", dir, "-o", "json"}, args...)...)), &cluster); err != nil {
			t.Fatal(err)
		}
		return cluster
	}
	names := func(c holdings.Cluster) (nodes, claims string) {
		var n, k []string
		for i := range c.Nodes {
			n = append(n, c.Nodes[i].Name)
		}
		for i := range c.Claims {
			k = append(k, c.Claims[i].Key())
		}
		return strings.Join(n, " "), strings.Join(k, " ")
	}
	if nodes, claims := names(of("-l", "pool=batch")); nodes != "worker-6" || claims != "" {
		t.Errorf("nodes %q, claims %q", nodes, claims)
	}
	team := of("-n", "ops")
	if nodes, claims := names(team); nodes != "worker-1" || claims != "ops/monitor" || len(team.Pending) != 0 {
		t.Errorf("nodes %q, claims %q, pending %v", nodes, claims, team.Pending)
	}
	// What others hold is not free.
	nodes := " -o jsonpath={.nodes} -f " + dir
	if diff := cmp.Diff(mustCall(t, strings.Fields("status worker-1"+nodes)...), mustCall(t, strings.Fields("status -n ops"+nodes)...)); diff != "" {
		t.Errorf("worker-1 (-all namespaces +one):\n%s", diff)
	}
	if nodes, claims := names(of("-n", "nothing")); nodes+claims != "" {
		t.Errorf("nodes %q, claims %q", nodes, claims)
	}
	if pending := of("-n", "team-a").Pending; len(pending) != 1 || pending[0].Name != "waits" {
		t.Errorf("pending %v", pending)
	}
	if all := mustCall(t, "status", "-f", dir); all != mustCall(t, "status", "-A", "-f", dir) {
		t.Error("--all-namespaces is not the default")
	}
	if drawing := mustCall(t, "status", "-n", "ops", "-f", dir); !strings.Contains(drawing, "admin access, which holds nothing: ops/monitor") || !strings.Contains(drawing, "default/huge") {
		t.Errorf("status says\n%s", drawing)
	}
}

// Findings about other nodes are left out, and those about the cluster are not.
func TestNodesAreChosenByLabels(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(leftOver)
	a["/metrics"] = gatesOff
	a["/api/v1/nodes/worker-1/proxy/configz"] = `{"kubeletconfig": {"cpuManagerPolicy": "static"}}`
	nodes := snapshotOf(t, a).Nodes
	other := nodes[0].DeepCopy()
	nodes[0].Labels = map[string]string{"pool": "batch"}
	other.Name, other.UID = "worker-2", "other"
	a["/api/v1/nodes"] = listOf("NodeList", "v1", append(nodes, other))
	t.Setenv("KUBECONFIG", a.serve(t))
	for args, want := range map[string]struct {
		exitCode int
		names    string
		stderr   string
	}{
		"validate -l pool=batch":  {exitFailed, "node/worker-1\n", "found 2 problems\n"},
		"validate -l pool!=batch": {exitFailed, "", "found 1 problem\n"},
		"validate -l pool=other":  {exitUsage, "", "no Node in the cluster has the labels \"pool=other\"\n"},
		"drift -l pool=batch":     {exitFailed, "node/worker-1\n", "found 2 problems\n"},
		"drift -l pool!=batch":    {exitUsage, "", "no node in the cluster with the labels \"pool!=batch\" has the driver\n"},
		"drift -l pool=other":     {exitUsage, "", "no Node in the cluster has the labels \"pool=other\"\n"},
		"drift worker-1 -l pool":  {exitUsage, "", "--selector chooses among several objects: remove it, or the name\n"},
		"status -l pool=other":    {exitUsage, "", "no Node in the cluster has the labels \"pool=other\"\n"},
		"status worker-1 -l pool": {exitUsage, "", "--selector chooses among several objects: remove it, or the name\n"},
	} {
		exitCode, stdout, stderr := call(append(strings.Fields(args), "-o", "name")...)
		if exitCode != want.exitCode || stdout != want.names || stderr != "kubectl-numa: error: "+want.stderr {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %+v", args, exitCode, stdout, stderr, want)
		}
	}
	a[pod] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("validate asks another node") })
	call("validate", "--ask-nodes", "-l", "pool!=batch")
}

// lint checks the objects that were asked for. That none is wrong of no object would be a
// wrong answer.
func TestLintOfAPart(t *testing.T) {
	manifests := file(t, strings.Replace(wrongManifests, "metadata: {name: p}", "metadata: {name: p, labels: {app: web}}", 1))
	for args, want := range map[string]string{
		"-n team":              "4 findings in 2 of 3 objects\n", // three objects name no namespace
		"-n other":             "2 findings in 1 of 2 objects\n",
		"-A":                   "4 findings in 2 of 3 objects\n",
		"-l app=web":           "2 findings in 1 of 1 objects\n",
		"-l app=web -n team":   "2 findings in 1 of 1 objects\n",
		"-l app=none -n other": "there are no objects in namespace other with the labels \"app=none\" in the files\n",
	} {
		exitCode, _, stderr := call(strings.Fields("lint -f " + manifests + " " + args)...)
		if (exitCode == exitFailed) != strings.Contains(want, "findings") || !strings.HasSuffix(stderr, "kubectl-numa: error: "+want) {
			t.Errorf("lint %s: exit code %d, stderr %q, want %q", args, exitCode, stderr, want)
		}
	}
}
