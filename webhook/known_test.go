package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// objects are the objects of a cluster: a slice, a template, a claim, and a class that
// locks a field. The driver's classes are there as well.
const objects = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: dra.numa
  nodeName: node
  pool: {name: node, resourceSliceCount: 1}
  devices:
  - name: numa-0
    allowMultipleAllocations: true
    capacity:
      cpu: {value: "16", requestPolicy: {default: "0", validRange: {min: "0", step: "2"}}}
      memory: {value: 4Gi, requestPolicy: {default: "0", validRange: {min: "0", step: 1Mi}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: three, namespace: ns}
spec: {spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 3, memory: 1Gi}}}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: ns}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: quiet}
spec:
  selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'}}]
  config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: isolated, locked: [partition]}}}]
`

// cluster is an API server with the objects, some of them changed.
func cluster(t testing.TB, edit func(*resourceapi.ResourceSlice)) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset()
	create := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	api := client.ResourceV1()
	for _, class := range object.Classes(t) {
		_, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{})
		create(err)
	}
	documents := strings.Split(objects, "---")
	slice := object.Parse[resourceapi.ResourceSlice](t, documents[0])
	if edit != nil {
		edit(slice)
	}
	_, err := api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{})
	create(err)
	_, err = api.ResourceClaimTemplates("ns").Create(t.Context(), object.Parse[resourceapi.ResourceClaimTemplate](t, documents[1]), metav1.CreateOptions{})
	create(err)
	_, err = api.ResourceClaims("ns").Create(t.Context(), object.Parse[resourceapi.ResourceClaim](t, documents[2]), metav1.CreateOptions{})
	create(err)
	_, err = api.DeviceClasses().Create(t.Context(), object.Parse[resourceapi.DeviceClass](t, documents[3]), metav1.CreateOptions{})
	create(err)
	return client
}

// handlerOf is the webhook of a cluster, until the test ends. Its reviews may take long: the
// machine of a test can be busy.
func handlerOf(t testing.TB, client *fake.Clientset) http.Handler {
	t.Helper()
	return handlerFrom(t, client, false)
}

func handlerFrom(t testing.TB, client *fake.Clientset, enforced bool) http.Handler {
	t.Helper()
	return handlerWith(t, client, enforced, nil)
}

func handlerWith(t testing.TB, client *fake.Clientset, enforced bool, translation *Translation) http.Handler {
	t.Helper()
	known, stop, err := startLookups(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	known.enforced, known.translation, known.openPods = enforced, translation, podsFrom(client)
	t.Cleanup(stop)
	limits := newReviewLimits()
	limits.timeout = time.Hour
	return newHandler(known.during, limits)
}

// podsFrom sends pods as JSON, which a fake client does not.
func podsFrom(client *fake.Clientset) func(context.Context, string, metav1.ListOptions) (io.ReadCloser, error) {
	return func(ctx context.Context, namespace string, options metav1.ListOptions) (io.ReadCloser, error) {
		list, err := client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(list)
		return io.NopCloser(bytes.NewReader(text)), err
	}
}

// reviewOf is a review of an object in YAML.
func reviewOf(t testing.TB, kind, object, old string) []byte {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "review-1", Namespace: "ns", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: kind}}
	if old != "" {
		request.Operation = admissionv1.Update
	}
	for _, part := range []struct {
		text string
		raw  *[]byte
	}{{object, &request.Object.Raw}, {old, &request.OldObject.Raw}} {
		if part.text == "" {
			continue
		}
		var err error
		if *part.raw, err = yaml.YAMLToJSON([]byte(part.text)); err != nil {
			t.Fatal(err)
		}
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func post(handler http.Handler, path string, body []byte) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return recorder
}

// ask returns the answer to a review.
func ask(t testing.TB, handler http.Handler, path, kind, object, old string) *admissionv1.AdmissionResponse {
	t.Helper()
	recorder := post(handler, path, reviewOf(t, kind, object, old))
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", recorder.Code, recorder.Body, err)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil || review.Response.UID != "review-1" {
		t.Fatalf("answer %s", recorder.Body)
	}
	return review.Response
}

// mapped makes the scheduler count the claims by itself.
func mapped(slice *resourceapi.ResourceSlice) {
	slice.Spec.Devices[0].NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{corev1.ResourceCPU: {}}
}
