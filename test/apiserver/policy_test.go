package apiserver

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
)

const (
	unboundToken = "the token is bound to no node, so it may write no ResourceSlice"
	othersSlice  = "the token is bound to node policy-a, so it may write no ResourceSlice of another node or pool"
	othersDriver = "the driver writes no ResourceSlice of another driver"
)

// TestDriverWritesOnlyItsOwnNodesSlices uses real tokens, as the kubelet asks for
// them: of the daemon's service account, bound to its pod.
func TestDriverWritesOnlyItsOwnNodesSlices(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t)
	ofA, ofB := daemonOn(t, admin, "policy-a"), daemonOn(t, admin, "policy-b")
	unbound := withToken(t, admin, nil)

	// A policy holds some time after it is made.
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) && createSlice(t, ofA, sliceOf("policy-a-probe", "policy-b"), true) == nil {
		time.Sleep(100 * time.Millisecond)
	}
	other := sliceOf("policy-a-driver", "policy-a")
	other.Spec.Driver = "gpu.example.com"
	pool := sliceOf("policy-a-pool", "policy-a")
	pool.Spec.Pool.Name = "policy-b"
	for name, row := range map[string]struct {
		api   kubernetes.Interface
		slice *resourceapi.ResourceSlice
		want  string
	}{
		"own":                  {ofA, sliceOf("policy-a-own", "policy-a"), ""},
		"own of the other":     {ofB, sliceOf("policy-b-own", "policy-b"), ""},
		"another node's":       {ofA, sliceOf("policy-a-other", "policy-b"), othersSlice},
		"in another's pool":    {ofA, pool, othersSlice},
		"of another driver":    {ofA, other, othersDriver},
		"with a token of none": {unbound, sliceOf("policy-none", "policy-a"), unboundToken},
	} {
		mustSay(t, "create "+name, row.want, createSlice(t, row.api, row.slice, false))
	}
	for name, row := range map[string]struct {
		api   kubernetes.Interface
		slice string
		want  string
	}{
		"own":            {ofA, "policy-a-own", ""},
		"another node's": {ofA, "policy-b-own", othersSlice},
	} {
		slices := row.api.ResourceV1().ResourceSlices()
		slice, err := admin.ResourceV1().ResourceSlices().Get(t.Context(), row.slice, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		slice.Spec.Pool.Generation++
		_, err = slices.Update(t.Context(), slice, metav1.UpdateOptions{})
		mustSay(t, "update "+name, row.want, err)
		mustSay(t, "delete "+name, row.want, slices.Delete(t.Context(), row.slice, metav1.DeleteOptions{}))
	}
}

// mustSay wants no error, or a refusal in these words.
func mustSay(t *testing.T, what, want string, err error) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.HasSuffix(err.Error(), "denied request: "+want)):
		t.Errorf("%s: %v, want a refusal with %q", what, err, want)
	}
}

func sliceOf(name, node string) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver.Name, NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
		},
	}
}

func createSlice(t *testing.T, api kubernetes.Interface, slice *resourceapi.ResourceSlice, dryRun bool) error {
	t.Helper()
	var options metav1.CreateOptions
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	_, err := api.ResourceV1().ResourceSlices().Create(t.Context(), slice, options)
	return err
}

// daemonOn makes a Node and a pod of the daemon there, and returns a client with the
// pod's token.
func daemonOn(t *testing.T, admin kubernetes.Interface, node string) kubernetes.Interface {
	t.Helper()
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeNode(t, admin, node) })
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: "dra-driver-numa", TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "driver", Image: "driver"}},
		},
	}
	pods := admin.CoreV1().Pods("dra-numa")
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		// The controllers of the rig may not have looked at the namespace yet.
		if pod, err = pods.Create(t.Context(), pod, metav1.CreateOptions{}); err == nil {
			break
		}
		if !apierrors.IsForbidden(err) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		//nolint:usetesting // the test's own context has ended by now
		if err := pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete pod of the daemon: %v", err)
		}
	})
	return withToken(t, admin, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID})
}

// withToken returns a client with a token of the daemon's service account.
func withToken(t *testing.T, admin kubernetes.Interface, bound *authenticationv1.BoundObjectReference) kubernetes.Interface {
	t.Helper()
	token, err := admin.CoreV1().ServiceAccounts("dra-numa").CreateToken(t.Context(), "dra-driver-numa",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := client.New(os.Getenv("APISERVER_KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster.Config)
	config.BearerToken = token.Status.Token
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}
