package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/podexec"
)

// stateOf answers as the daemon's pod of a node, which is the generated machine "rig".
// Each state has the next part, a JSON object; the last part is repeated.
func stateOf(parts ...string) http.Handler {
	var asked atomic.Int64
	return podexec.Handler(func(_ string, command []string) (string, string, int) {
		switch strings.Join(command[:min(len(command), 2)], " ") {
		case "/dra-numa state":
			part := parts[min(int(asked.Add(1)), len(parts))-1]
			return `{"format": "dra.numa/state", "version": 1, ` + strings.TrimPrefix(part, "{"), "", 0
		case "/dra-numa config":
			return "kind: EffectiveConfig\n", "", 0
		case "/dra-numa machine":
			return rigArchive(), "", 0
		}
		return "", "unexpected " + strings.Join(command, " "), 2
	})
}

// rigArchive are the files of the generated machine "rig", as dra-numa machine writes them.
func rigArchive() string {
	var archive strings.Builder
	for _, preset := range fake.Presets() {
		if preset.Name == "rig" {
			if err := capture.Write(&archive, preset.Machine.FS()); err != nil {
				panic(err)
			}
		}
	}
	return archive.String()
}

const (
	pod       = "/api/v1/namespaces/dra-numa/pods/driver-x/exec"
	nothing   = `{"node": "worker-1"}`
	leftOver  = `{"partitions": [{"cgroup": "pods/x", "cpus": "4-5", "state": "root"}], "specs": [{"claimUID": "u", "file": "f.json", "cpus": "6"}]}`
	driftText = `NODE      CHECK                CLAIM  CPUS  WHERE            EXPECTED                DETECTED
worker-1  spec-without-record  u      6     CDI spec f.json  a record                none
worker-1  partition-of-nobody  -      4-5   cgroup pods/x    a container of a claim  no record of the hook, partition root
`
)

func TestDriftOfAConsistentNodeIsNone(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(nothing)
	t.Setenv("KUBECONFIG", a.serve(t))
	for _, args := range []string{"drift", "drift worker-1"} {
		if stdout := mustCall(t, strings.Fields(args)...); stdout != noProblems {
			t.Errorf("%s says\n%s", args, stdout)
		}
	}
	if stdout := mustCall(t, "drift", "-o", "json"); !strings.HasSuffix(stdout, "\n  \"items\": []\n}\n") {
		t.Errorf("drift -o json says %q", stdout)
	}
}

func TestDriftIsWhatLastsAndABundleHasIt(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(leftOver)
	t.Setenv("KUBECONFIG", a.serve(t))
	const wantError = "kubectl-numa: error: found 2 problems\n"
	exitCode, stdout, stderr := call("drift")
	if diff := cmp.Diff(driftText, stdout); exitCode != exitFailed || stderr != wantError || diff != "" {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", exitCode, stderr, diff)
	}
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	mustCall(t, "gather", "--file", file)
	t.Setenv("KUBECONFIG", "/nowhere")
	exitCode, stdout, stderr = call("drift", "--from", file)
	if diff := cmp.Diff(driftText, stdout); exitCode != exitFailed || stderr != wantError || diff != "" {
		t.Errorf("of a bundle: exit code %d, stderr %q (-want +got):\n%s", exitCode, stderr, diff)
	}
	_, stdout, _ = call("drift", "worker-1", "--from", file, "-o", "json")
	var findings struct{ Items []map[string]string }
	if err := json.Unmarshal([]byte(stdout), &findings); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"node": "worker-1", "check": "spec-without-record", "claim": "u", "cpus": "6", "where": "CDI spec f.json", "expected": "a record", "detected": "none",
	}
	if diff := cmp.Diff(want, findings.Items[0]); diff != "" {
		t.Errorf("finding (-want +got):\n%s", diff)
	}
}

// A claim was being prepared.
func TestWhatIsOverAfterAMomentIsNoDrift(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(leftOver, nothing)
	t.Setenv("KUBECONFIG", a.serve(t))
	if stdout := mustCall(t, "drift"); stdout != noProblems {
		t.Errorf("drift says\n%s", stdout)
	}
}

// annMayNot refuses everything.
func annMayNot() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "ann may not"}`)
	})
}

// The error is one line, also for a bundle.
func TestNodeThatCannotBeReadIsExitCode2(t *testing.T) {
	a := installedCluster(t)
	a[pod] = annMayNot()
	t.Setenv("KUBECONFIG", a.serve(t))
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	exitCode, _, stderr := call("gather", "--file", file)
	if exitCode != exitDone || !strings.HasPrefix(stderr, "kubectl-numa: note: the bundle lacks state of the node: run dra-numa state in pod dra-numa/driver-x, container driver: ann may not") {
		t.Errorf("gather: exit code %d, stderr %q", exitCode, stderr)
	}
	for args, want := range map[string]string{
		"drift":                                 "run dra-numa state in pod dra-numa/driver-x, container driver: ann may not",
		"drift --from " + file:                  "run dra-numa state in pod dra-numa/driver-x, container driver: ann may not",
		"drift worker-9":                        `there is no Node "worker-9" in the cluster`,
		"drift worker-9 --from " + file:         `there is no Node "worker-9" in the bundle`,
		"drift a b":                             `unexpected argument "b", want one node or none`,
		"drift --from " + file + " --context x": "--context is for a cluster, but no cluster is read",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if strings.Contains(want, "may not") {
			want += "\nkubectl-numa: hint: bind a Role with the verbs get and create on pods/exec"
		}
		if exitCode != exitUsage || stdout != "" && stdout != noProblems || !strings.HasPrefix(stderr, "kubectl-numa: error: ") || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q, want %q", args, exitCode, stdout, stderr, want)
		}
	}
}

// The example in the documentation is the program's output.
func TestDriftOfThePageIsWhatItSays(t *testing.T) {
	page := testfiles.Read(t, "../../docs/kubectl-numa.md")
	if want := "$ kubectl numa drift worker-1\n" + driftText + "```"; !strings.Contains(page, want) {
		t.Errorf("docs/kubectl-numa.md lacks\n%s", want)
	}
}

func TestDriftKnowsTheNodes(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	if _, names, _ := call("__complete", "drift", ""); names != "worker-1\n:4\n" {
		t.Errorf("completion is %q", names)
	}
}
