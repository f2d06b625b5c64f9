package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// paged has the API server return pods in pages, as real ones do.
func paged(client *fake.Clientset, pods []corev1.Pod) {
	client.PrependReactor("list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options, begin := action.(clienttesting.ListActionImpl).ListOptions, 0
		if options.Continue != "" {
			if _, err := fmt.Sscan(options.Continue, &begin); err != nil {
				return true, nil, err
			}
		}
		end := len(pods)
		if options.Limit > 0 {
			end = min(begin+int(options.Limit), len(pods))
		}
		page := &corev1.PodList{Items: pods[begin:end]}
		if end < len(pods) {
			page.Continue = fmt.Sprint(end)
		}
		return true, page, nil
	})
}

// waiting are n pods, the last of which waits for the claim "replaced".
func waiting(t *testing.T, n int) []corev1.Pod {
	t.Helper()
	pods := make([]corev1.Pod, n)
	for i := range pods {
		pods[i].Name = fmt.Sprint("pod-", i)
	}
	pods[n-1] = *object.Parse[corev1.Pod](t, `{metadata: {name: last, namespace: ns, uid: u, annotations: {a: b}}, status: {phase: Pending}, spec: {nodeName: n,
		resourceClaims: [{name: c, resourceClaimName: replaced}], containers: [{name: a, image: i, resources: {requests: {cpu: 2}, claims: [{name: c}]}}]}}`)
	return pods
}

func TestWaitingPodsAreReadInPages(t *testing.T) {
	const larger = `{metadata: {name: replaced}, spec: {devices: {requests: [{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 64}}}}]}}}`
	for n, want := range map[int]string{
		1:                        "the requests lack cpu 62",
		podsOfPage + 1:           "the requests lack cpu 62",
		podsOfPage * mostPages:   "the requests lack cpu 62",
		podsOfPage*mostPages + 1: "what waits for this claim is not known: too much waits in the namespace: more than 4096 pods",
	} {
		client := cluster(t, nil)
		paged(client, waiting(t, n))
		recorder := post(enforcing(t, client), "/enforce", reviewOf(t, "ResourceClaim", larger, ""))
		if !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("of %d pods: %s, want %q", n, recorder.Body, want)
		}
	}
}

// A pod can have a megabyte of other things.
func TestOnlyWhatCountsOfAPodIsKept(t *testing.T) {
	client, pods := cluster(t, nil), waiting(t, 2)
	want := *pods[1].DeepCopy()
	want.Annotations, want.Spec.NodeName, want.Spec.Containers[0].Image, want.Status.Phase = nil, "", "", ""
	paged(client, pods)
	known, stop, err := startLookups(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	read := func() (list []corev1.Pod, err error) {
		err = known.during(t.Context()).Waiting("ns", "", func(pod *corev1.Pod) bool { list = append(list, *pod); return true })
		return list, err
	}
	if got, err := read(); err != nil || len(got) != 1 {
		t.Errorf("%d pods, %v", len(got), err)
	} else if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	for range 1000 {
		pods[1].Spec.Containers = append(pods[1].Spec.Containers, pods[1].Spec.Containers[0])
	}
	if got, err := read(); err == nil || !strings.Contains(err.Error(), `pod "last" has `) {
		t.Errorf("%d pods, %v", len(got), err)
	}
}

// Pods that wait may have any number of other claims, each of which is looked up.
func TestOtherClaimsOfWaitingPodsAreBounded(t *testing.T) {
	const claim = `{metadata: {name: replaced}, spec: {devices: {requests: [{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}}`
	client := cluster(t, nil)
	var pods []corev1.Pod
	for range mostLookups + 1 {
		pods = append(pods, *object.Parse[corev1.Pod](t, `{metadata: {name: p, namespace: ns, uid: u}, spec: {resourceClaims: [{name: c, resourceClaimName: replaced}, {name: d, resourceClaimName: two}],
			containers: [{name: a, resources: {requests: {cpu: 4}, claims: [{name: c}, {name: d}]}}]}}`))
	}
	handler := enforcing(t, client)
	paged(client, pods[:mostLookups])
	if response := ask(t, handler, "/enforce", "ResourceClaim", claim, ""); !response.Allowed {
		t.Errorf("refused: %s", response.Result.Message)
	}
	paged(client, pods)
	const want = "the pods that wait for it have more than 128 other claims"
	if response := ask(t, handler, "/enforce", "ResourceClaim", claim, ""); response.Allowed || !strings.HasSuffix(response.Result.Message, want) {
		t.Errorf("%+v, want a refusal with %q", response, want)
	}
}

// Most claims with capacities may be those of other drivers.
func TestClaimsWithoutZonesAreNotCompared(t *testing.T) {
	client := cluster(t, nil)
	handler := enforcing(t, client)
	before := len(client.Actions())
	const cache = `{metadata: {name: c}, spec: {devices: {requests: [{name: z, exactly: {deviceClassName: cache.dra.numa, capacity: {requests: {ways: 2}}}}]}}}`
	if response := ask(t, handler, "/enforce", "ResourceClaim", cache, ""); !response.Allowed {
		t.Errorf("refused: %s", response.Result.Message)
	}
	for _, action := range client.Actions()[before:] {
		t.Errorf("the webhook asks to %s %s", action.GetVerb(), action.GetResource().Resource)
	}
}
