package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const (
	goodClaim = `{spec: {devices: {requests: [{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, memory: 1Gi}}}}]}}}`
	slowClaim = `
spec:
  devices:
    requests:
    - name: z
      exactly: {deviceClassName: zone.dra.numa, count: 2, capacity: {requests: {dra.numa/cpu: 2, memory: 1Gi}}}
`
	lockedClaim = `
spec:
  devices:
    requests: [{name: z, exactly: {deviceClassName: quiet, capacity: {requests: {cpu: 2, memory: 1Gi}}}}]
    config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: isolated}}}]
`
	badClass = `{spec: {config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: x}}}]}}`
	plainPod = `
metadata: {name: p}
spec:
  resourceClaims: [{name: c, resourceClaimTemplateName: three}]
  containers: [{name: a, resources: {claims: [{name: c}]}}]
`
	errorText = `spec.config[0].opaque.parameters: partition: "x", allowed are root, isolated, none`
)

func TestValidate(t *testing.T) {
	handler := handlerOf(t, cluster(t, nil))
	for name, row := range map[string]struct {
		kind, object, old string
		refused           string
		warnings          []string
	}{
		"good claim": {"ResourceClaim", goodClaim, "", "", nil},
		"slow claim": {"ResourceClaim", slowClaim, "", "", []string{
			"spec.devices.requests[0].exactly.capacity.requests[dra.numa/cpu]: no device has this capacity, so the pod would stay Pending: write cpu (unknown-capacity-key)",
			"spec.devices.requests[0].exactly.count: asks for shares of 2 different zones of one node; for a larger share of one zone, ask for more capacity (count-on-shared)",
		}},
		"claim that changes what its class locks": {
			"ResourceClaim",
			strings.Replace(lockedClaim, "isolated", "none", 1),
			"",
			`spec.devices.config[0].opaque.parameters: partition: "none", allowed is "isolated", because DeviceClass "quiet" locks this field (request "z")`,
			nil,
		},
		"claim that repeats what its class locks": {"ResourceClaim", lockedClaim, "", "", nil},
		"bad class":           {"DeviceClass", badClass, "", errorText, nil},
		"class that gets bad": {"DeviceClass", badClass, "{spec: {}}", errorText, nil},
		"class that was bad":  {"DeviceClass", badClass, badClass, "", []string{errorText}},
		"template":            {"ResourceClaimTemplate", `{spec: {spec: {devices: {}}}}`, "", "", nil},
		"pod without requests": {
			"Pod",
			plainPod,
			"",
			"",
			[]string{"spec.containers: the requests lack cpu 4, memory 1Gi, which the pod's claims hold (requests-do-not-match-claim)"},
		},
		"pod without template": {
			"Pod",
			strings.Replace(plainPod, "three", "none", 1),
			"",
			"",
			[]string{`spec.resourceClaims[0]: there is no claim template "none" (unresolved-claim)`},
		},
	} {
		response := ask(t, handler, "/validate", row.kind, row.object, row.old)
		refused := ""
		if !response.Allowed {
			refused = response.Result.Message
		}
		if refused != row.refused || !slices.Equal(response.Warnings, row.warnings) || response.Patch != nil {
			t.Errorf("%s: refused %q with warnings\n%q, want %q and\n%q", name, refused, response.Warnings, row.refused, row.warnings)
		}
	}
}

func TestMutate(t *testing.T) {
	handler := handlerOf(t, cluster(t, nil))
	annotated := strings.Replace(plainPod, "name: p", "name: p, annotations: {a: b}", 1)
	for name, row := range map[string]struct{ pod, want string }{
		"bare": {plainPod, `[{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"4","memory":"1Gi"}},` +
			`{"op":"add","path":"/metadata/annotations","value":{"dra.numa/mirrored":"{\"a\":{\"cpu\":\"4\",\"memory\":\"1Gi\"}}"}}]`},
		"annotated": {annotated, `[{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"4","memory":"1Gi"}},` +
			`{"op":"add","path":"/metadata/annotations/dra.numa~1mirrored","value":"{\"a\":{\"cpu\":\"4\",\"memory\":\"1Gi\"}}"}]`},
		"by claim and init container": {
			`
spec:
  resourceClaims: [{name: c, resourceClaimName: two}]
  initContainers: [{name: i, resources: {claims: [{name: c}]}}]
  containers: [{name: a}]
`,
			`[{"op":"add","path":"/spec/initContainers/0/resources/requests","value":{"cpu":"2"}},` +
				`{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"2"}},` +
				`{"op":"add","path":"/metadata/annotations","value":{"dra.numa/mirrored":"{\"a\":{\"cpu\":\"2\"},\"i\":{\"cpu\":\"2\"}}"}}]`,
		},
		"the pod's own": {
			`
spec:
  resources: {requests: {cpu: 1}}
  resourceClaims: [{name: c, resourceClaimName: two}]
  containers: [{name: a, resources: {claims: [{name: c}]}}]
`,
			`[{"op":"add","path":"/spec/resources/requests","value":{"cpu":"2"}},` +
				`{"op":"add","path":"/metadata/annotations","value":{"dra.numa/mirrored":"{\"a\":{\"cpu\":\"2\"}}"}}]`,
		},
		"repeated by hand": {strings.Replace(plainPod, "{claims", "{requests: {cpu: 4, memory: 1Gi}, claims", 1), ""},
		"not resolved":     {strings.Replace(plainPod, "three", "none", 1), ""},
		"no claims":        {`{spec: {containers: [{name: a}]}}`, ""},
	} {
		response := ask(t, handler, "/mutate", "Pod", row.pod, "")
		if diff := cmp.Diff(row.want, string(response.Patch)); diff != "" || !response.Allowed || (response.PatchType == nil) != (row.want == "") {
			t.Errorf("%s: allowed %t, patch (-want +got):\n%s", name, response.Allowed, diff)
		}
	}
}

// The API server drops the status of a new pod after it has asked for changes, and that of
// a changed pod likewise. With this status, the pod's claim would be the smaller one, or
// would already be counted.
func TestStatusThatAUserSendsIsNotBelieved(t *testing.T) {
	handler := handlerOf(t, cluster(t, nil))
	want := ask(t, handler, "/mutate", "Pod", plainPod, "").Patch
	const (
		smaller = "status: {resourceClaimStatuses: [{name: c, resourceClaimName: two}]}\n"
		counted = "status: {resourceClaimStatuses: [{name: c, resourceClaimName: two}], nodeAllocatableResourceClaimStatuses: [{resourceClaimName: two}]}\n"
	)
	for _, status := range []string{smaller, counted} {
		for _, old := range []string{"", plainPod} {
			if response := ask(t, handler, "/mutate", "Pod", plainPod+status, old); string(response.Patch) != string(want) {
				t.Errorf("with %sthe patch is %s, want %s", status, response.Patch, want)
			}
		}
	}
	stored := ask(t, handler, "/mutate", "Pod", plainPod, plainPod+smaller)
	if string(stored.Patch) == string(want) {
		t.Error("the status of the stored pod has no effect")
	}
}

// An API server refuses such a pod itself, but asks for changes first. It accepts such a
// claim.
func TestEndlessAmounts(t *testing.T) {
	client := cluster(t, nil)
	claim := object.Parse[resourceapi.ResourceClaim](t, strings.ReplaceAll(
		`
metadata: {name: endless, namespace: ns}
spec:
  devices:
    requests:
    - {name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: ENDLESS, dra.numa/cpu: ENDLESS}}}}`, "ENDLESS", object.EndlessAmount))
	if _, err := client.ResourceV1().ResourceClaims("ns").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	handler := handlerOf(t, client)
	pod := "{spec: {containers: [{name: a, resources: {requests: {cpu: " + object.EndlessAmount + "}}}, {name: b, resources: {requests: {cpu: 1}}}]}}"
	for _, path := range []string{"/mutate", "/validate"} {
		recorder := post(handler, path, reviewOf(t, "Pod", pod, ""))
		if recorder.Code != http.StatusInternalServerError || !strings.Contains(recorder.Body.String(), `cpu "1e300000000": want an amount that a node can have`) {
			t.Errorf("%s: %d %s", path, recorder.Code, recorder.Body)
		}
	}
	uses := "{spec: {resourceClaims: [{name: c, resourceClaimName: endless}], containers: [{name: a, resources: {claims: [{name: c}]}}]}}"
	if response := ask(t, handler, "/mutate", "Pod", uses, ""); response.Patch != nil {
		t.Errorf("patch %s", response.Patch)
	}
	if response := ask(t, handler, "/validate", "Pod", uses, ""); len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "no zone has that much") {
		t.Errorf("warnings %q", response.Warnings)
	}
}

// Requests would count twice (KEP-5517).
func TestServerThatCountsIsNotHelped(t *testing.T) {
	handler := handlerOf(t, cluster(t, mapped))
	if response := ask(t, handler, "/mutate", "Pod", plainPod, ""); response.Patch != nil {
		t.Errorf("patch %s", response.Patch)
	}
	if response := ask(t, handler, "/validate", "Pod", plainPod, ""); response.Warnings != nil {
		t.Errorf("warnings %q", response.Warnings)
	}
}

// Without an answer, the failurePolicy decides.
func TestNonsenseIsNoAnswer(t *testing.T) {
	handler := handlerOf(t, cluster(t, nil))
	for name, row := range map[string]struct {
		path, body string
		code       int
		want       string
	}{
		"no JSON":    {"/validate", "review", http.StatusBadRequest, "read review: "},
		"no request": {"/validate", "{}", http.StatusBadRequest, "read review: no request"},
		"other kind": {
			"/validate",
			string(reviewOf(t, "Secret", "{}", "")),
			http.StatusInternalServerError,
			"want ResourceClaim, ",
		},
		"not of its kind": {
			"/validate",
			string(reviewOf(t, "DeviceClass", "{spec: 1}", "")),
			http.StatusInternalServerError,
			"read DeviceClass",
		},
		"mutate a claim": {
			"/mutate",
			string(reviewOf(t, "ResourceClaim", "{}", "")),
			http.StatusInternalServerError,
			"want Pod",
		},
		"too large": {
			"/mutate",
			`{"request": {"name": "` + strings.Repeat("x", maxReviewBytes) + `"}}`,
			http.StatusRequestEntityTooLarge,
			"allowed are 3145728",
		},
	} {
		recorder := post(handler, row.path, []byte(row.body))
		if recorder.Code != row.code || !strings.Contains(recorder.Body.String(), row.want) {
			t.Errorf("%s: %d %s, want %d with %q", name, recorder.Code, recorder.Body, row.code, row.want)
		}
	}
}

// What people write: a claim and a template with constraint and configuration, an
// own class, and a pod of a few containers.
const (
	realSpec = `{devices: {
  requests: [
    {name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 8, memory: 1Gi}},
      selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].?coreType.orValue("") == "standard"'}}]}},
    {name: gpu, exactly: {deviceClassName: gpu.dra.numa}}],
  constraints: [{matchAttribute: resource.kubernetes.io/numaNode}],
  config: [{requests: [zone], opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, cores: one-thread-per-core, l3: prefer, partition: isolated}}}]}}`
	realClass = `{metadata: {name: quiet}, spec: {
  selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone" && device.attributes["dra.numa"].?exclusivity.orValue("") == "kernel"'}}],
  config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: isolated}}}]}}`
	realPod = `{metadata: {name: p, labels: {app: trainer}}, spec: {
  resourceClaims: [{name: c, resourceClaimTemplateName: three}],
  initContainers: [{name: fetch, image: a/b:1, resources: {requests: {cpu: 100m, memory: 64Mi}}}],
  containers: [
    {name: main, image: a/b:1, command: [/bin/train], env: [{name: A, value: b}, {name: C, value: d}], ports: [{containerPort: 80}],
      volumeMounts: [{name: data, mountPath: /data}], resources: {claims: [{name: c}]}},
    {name: side, image: a/b:1, resources: {requests: {cpu: 50m, memory: 32Mi}, limits: {memory: 64Mi}}}],
  volumes: [{name: data, emptyDir: {}}]}}`
)

// BenchmarkReview reports the 99th percentile of what a review takes, HTTP and JSON
// included; the issue allows 5 ms. What decode takes is the least that it can be: it
// reads the same bytes and does nothing.
func BenchmarkReview(b *testing.B) {
	handler := handlerWith(b, cluster(b, nil), false, translation())
	decode := answer(func(_ context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		var object map[string]any
		return &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}, json.Unmarshal(request.Object.Raw, &object)
	})
	for _, row := range []struct{ name, path, kind, object string }{
		{"claim", "/validate", "ResourceClaim", "{spec: " + realSpec + "}"},
		{"template", "/validate", "ResourceClaimTemplate", "{spec: {spec: " + realSpec + "}}"},
		{"class", "/validate", "DeviceClass", realClass},
		{"pod", "/validate", "Pod", realPod},
		{"mirror", "/mutate", "Pod", realPod},
		{"translate", "/translate", "Pod", strings.ReplaceAll(staticPod, "example.com", "none.example.com")},
	} {
		body := reviewOf(b, row.kind, row.object, "")
		b.Run(row.name+"/review", func(b *testing.B) { benchmark(b, handler, row.path, body) })
		b.Run(row.name+"/decode", func(b *testing.B) { benchmark(b, decode, row.path, body) })
	}
}

func benchmark(b *testing.B, handler http.Handler, path string, body []byte) {
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		recorder := post(handler, path, body)
		took = append(took, time.Since(begin))
		if recorder.Code != http.StatusOK || !strings.Contains(recorder.Body.String(), `"allowed":true`) {
			b.Fatal(recorder.Body)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns/op")
}
