package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

func daemonPod(name, node string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "dra-numa", Labels: map[string]string{"app.kubernetes.io/component": "daemon"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func nodeSlice(node string) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-slice"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver.Name, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
}

func TestReleaseWorksWhenAllNodesHavePublished(t *testing.T) {
	f := releaseFlags{namespace: "dra-numa", selector: "app.kubernetes.io/component=daemon", timeout: time.Millisecond}
	other := daemonPod("other", "n3", corev1.ConditionFalse)
	other.Labels = nil
	client := fake.NewClientset(daemonPod("a", "n1", corev1.ConditionTrue), daemonPod("b", "n2", corev1.ConditionTrue), other, nodeSlice("n1"))
	var out strings.Builder
	err := testRelease(t.Context(), client, f, &out)
	if want := "test the release: node n2: the API server does not have all ResourceSlices of the node"; err == nil || err.Error() != want {
		t.Fatalf("error %v, want %q", err, want)
	}
	if _, err := client.ResourceV1().ResourceSlices().Create(t.Context(), nodeSlice("n2"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := testRelease(t.Context(), client, f, &out); err != nil {
		t.Fatal(err)
	}
	if want := "2 daemons are ready, and the API server has the ResourceSlices of their nodes.\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// An API server that does not answer at first is no reason to fail, and the last error says
// why the time was up.
func TestReleaseIsAskedForAgain(t *testing.T) {
	f := releaseFlags{namespace: "dra-numa", timeout: time.Minute}
	client := fake.NewClientset(daemonPod("a", "n1", corev1.ConditionTrue), nodeSlice("n1"))
	refusals := 1
	client.PrependReactor("list", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		refusals--
		return refusals >= 0, nil, errors.New("try again")
	})
	var out strings.Builder
	if err := testRelease(t.Context(), client, f, &out); err != nil {
		t.Error(err)
	}
	refusals, f.timeout = 1<<30, time.Millisecond
	if err := testRelease(t.Context(), client, f, &out); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("error %v", err)
	}
}

func TestTestReleaseNeedsANamespaceAndLabels(t *testing.T) {
	for args, want := range map[string]string{"": "--namespace is missing", "--namespace=a": "--selector is missing"} {
		if err := runTestRelease(t.Context(), cli.Call{Name: "dra-numa test-release", Args: strings.Fields(args), Stdout: io.Discard}); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
