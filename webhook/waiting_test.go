package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
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
	known.openPods = podsFrom(client)
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

const waitingPod = `{"metadata": {"name": "last", "uid": "u"}, "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [%s{}]}}},
	"resourceClaims": [{"name": "c", "resourceClaimName": "replaced"}], "containers": [{"name": "a", "image": "i"}]}}`

func waitingPods(items ...string) string {
	return `{"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [` + strings.Join(items, ",") + `]}`
}

func namesOf(ctx context.Context, known *lookups) (names []string, err error) {
	err = known.during(ctx).Waiting("ns", "", func(pod *corev1.Pod) bool { names = append(names, pod.Name); return true })
	return names, err
}

func TestPagesAreReadAsText(t *testing.T) {
	var asked *http.Request
	answer := waitingPods(fmt.Sprintf(waitingPod, ""), fmt.Sprintf(waitingPod, ""))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	known := &lookups{openPods: openPods(client), selectors: probe.New(), pages: make(chan struct{}, 1)}
	if names, err := namesOf(t.Context(), known); err != nil || len(names) != 2 {
		t.Errorf("pods %q, %v", names, err)
	}
	want := "/api/v1/namespaces/ns/pods?fieldSelector=status.phase%3DPending&limit=32"
	if got := asked.URL.String(); got != want || asked.Header.Get("Accept") != "application/json" {
		t.Errorf("asked %s for %s, want %s", got, asked.Header.Get("Accept"), want)
	}
	for _, answer = range []string{`[]`, `{"items": 1}`, `{"items": [{`, `{"items": [{"spec": 1}]}`, ``} {
		if _, err := namesOf(t.Context(), known); err == nil {
			t.Errorf("%q is read", answer)
		}
	}
}

// A tenant can have a page of pods of a megabyte, whose lists of nothing take 20 times as
// much memory when they are decoded. The time of a review stands still meanwhile: a race
// detector takes seconds for such a page.
func TestLargePagesAreRefused(t *testing.T) {
	large := fmt.Sprintf(waitingPod, strings.Repeat("{},", 700_000))
	synctest.Test(t, func(t *testing.T) {
		read := func(items ...string) ([]string, error) {
			open := func(context.Context, string, metav1.ListOptions) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader(waitingPods(items...))), nil
			}
			return namesOf(t.Context(), &lookups{openPods: open, selectors: probe.New(), pages: make(chan struct{}, 1)})
		}
		if names, err := read(large, fmt.Sprintf(waitingPod, "")); err != nil || len(names) != 2 {
			t.Errorf("pods %q, %v", names, err)
		}
		if names, err := read(large, large, large, large, large); !errors.Is(err, errTooMuchWaits) || !strings.HasSuffix(err.Error(), "32 pods have more than 8388608 bytes") {
			t.Errorf("pods %q, %v", names, err)
		}
	})
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
