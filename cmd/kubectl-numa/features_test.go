package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestFeaturesOfACluster(t *testing.T) {
	a := installedCluster(t)
	a["/metrics"] = `kubernetes_feature_enabled{name="DRAConsumableCapacity",stage="BETA"} 1` + "\n"
	text := mustCall(t, "features", "--kubeconfig", a.serve(t))
	testfiles.Contains(t, text,
		"FEATURE             STATE  NEEDS ",
		"\nshared-zones        on     DRAConsumableCapacity ",
		"  kube-apiserver v1.37.1 does not have DRADeviceTaintRules\n",
		"  kernel on worker-1\n",
	)
	var document struct {
		Kubernetes string
		Features   []diagnosis.Feature
	}
	if err := json.Unmarshal([]byte(mustCall(t, "features", "--kubeconfig", a.serve(t), "-o", "json")), &document); err != nil {
		t.Fatal(err)
	}
	if document.Kubernetes != "v1.37.1" || len(document.Features) < 5 || document.Features[0].State != diagnosis.FeatureOn {
		t.Errorf("features are %+v", document)
	}
}

// What cannot be read is unknown, and a note says why.
func TestFeaturesThatCannotBeRead(t *testing.T) {
	a := installedCluster(t)
	delete(a, "/metrics")
	delete(a, "/api/v1/nodes/worker-1/proxy/configz")
	exitCode, stdout, stderr := call("features", "--kubeconfig", a.serve(t))
	if exitCode != exitDone || !strings.Contains(stdout, "unknown  DRAConsumableCapacity ") ||
		!strings.Contains(stderr, "kubectl-numa: note: the feature gates of kube-apiserver cannot be read: ") || !strings.Contains(stderr, "kubectl-numa: note: the configz of kubelet cannot be read: ") {
		t.Errorf("exit code %d, stderr %s, stdout\n%s", exitCode, stderr, stdout)
	}
}
