package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const versionText = `COMPONENT        VERSION  IMAGE  NODES
kubectl-numa     dev      -      -
kube-apiserver   v1.37.1  -      -
kubelet          v1.37.1  -      1
dra-driver-numa  -        d:1    1
skew: kubectl-numa is "dev" and the driver is "": the versions cannot be compared, because at least one is not that of a release
`

// versionCluster answers only what version may ask.
func versionCluster(t *testing.T) answers {
	t.Helper()
	a := installedCluster(t)
	a["/api/v1/namespaces/dra-numa/pods"] = a["/api/v1/pods"]
	for _, path := range []string{"/metrics", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceslices", "/apis/rbac.authorization.k8s.io/v1/clusterroles"} {
		delete(a, path)
	}
	return a
}

func TestVersion(t *testing.T) {
	kubeconfig := versionCluster(t).serve(t)
	if got := mustCall(t, "version", "--kubeconfig", kubeconfig); got != versionText {
		t.Errorf("version says (-want +got):\n%s", cmp.Diff(versionText, got))
	}
	var document diagnosis.Versions
	if err := json.Unmarshal([]byte(mustCall(t, "version", "--kubeconfig", kubeconfig, "-o", "json")), &document); err != nil {
		t.Fatal(err)
	}
	if document.Client != "dev" || document.Kubernetes != "v1.37.1" || len(document.Skew) != 1 || len(document.Components) != 2 || document.Namespace != "dra-numa" {
		t.Errorf("version is %+v", document)
	}
}

// A bundle has the versions of its cluster.
func TestVersionOfABundle(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	testfiles.Write(t, path, string(gather(t, time.Unix(0, 0))))
	if got := mustCall(t, "version", "--from", path); got != versionText {
		t.Errorf("version says (-want +got):\n%s", cmp.Diff(versionText, got))
	}
}

// The version of this program is known without a cluster, and the answer says what it
// lacks.
func TestVersionOfWhatCanBeRead(t *testing.T) {
	const client = "COMPONENT     VERSION  IMAGE  NODES\nkubectl-numa  dev      -      -\n"
	if got := mustCall(t, "version", "--client", "--kubeconfig", "/no/such"); got != client {
		t.Errorf("version --client says\n%s", got)
	}
	exitCode, stdout, stderr := call("version", "--kubeconfig", answers{}.serve(t))
	if exitCode != exitUsage || stdout != client || !strings.HasPrefix(stderr, "kubectl-numa: error: read the cluster: get version: ") {
		t.Errorf("of no cluster: exit code %d, stdout\n%sstderr %s", exitCode, stdout, stderr)
	}
	a := versionCluster(t)
	delete(a, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")
	exitCode, stdout, stderr = call("version", "--kubeconfig", a.serve(t))
	if exitCode != exitDone || !strings.Contains(stdout, "kube-apiserver  v1.37.1") || !strings.HasPrefix(stderr, "kubectl-numa: note: the answer lacks the ClusterRoleBindings of dra-driver-numa: ") {
		t.Errorf("without a right: exit code %d, stdout\n%sstderr %s", exitCode, stdout, stderr)
	}
	delete(a, "/api/v1/nodes")
	_, stdout, _ = call("version", "--driver-namespace", "dra-numa", "--kubeconfig", a.serve(t))
	if !strings.Contains(stdout, "dra-driver-numa  -        d:1    1\n") {
		t.Errorf("with --driver-namespace: stdout\n%s", stdout)
	}
}
