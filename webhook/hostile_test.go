package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// reviewed are objects that the API server asks the webhook about, by kind.
var reviewed = map[string]string{
	"ResourceClaim": `
metadata: {name: c, namespace: ns, labels: {app: a}, annotations: {resource.kubernetes.io/pod-claim-name: c}, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u9, controller: true}]}` + object.FullClaimSpec,
	"ResourceClaimTemplate": `
metadata: {name: t, namespace: ns, labels: {app: a}}
spec:
  metadata: {labels: {app: a}, annotations: {resource.kubernetes.io/pod-claim-name: c}}` +
		strings.ReplaceAll(object.FullClaimSpec, "\n", "\n  "),
	"DeviceClass": `
metadata: {name: quiet, labels: {app: a}}
spec:
  selectors: [{cel: {expression: 'device.driver == "dra.numa"'}}]
  extendedResourceName: example.com/zone
  config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: root, locked: [partition]}}}]
`,
	"Pod": `
metadata: {name: p, uid: u9, labels: {app.kubernetes.io/name: dra-driver-numa}, annotations: {dra.numa/mirrored: "{}"}}
spec:
  schedulerName: default-scheduler
  nodeName: "n"
  nodeSelector: {disk: fast}
  overhead: {cpu: "1"}
  resourceClaims: [{name: c, resourceClaimName: alternatives}, {name: d, resourceClaimTemplateName: three}]
  initContainers: [{name: i, image: a, restartPolicy: Always, resources: {requests: {cpu: "1"}}}]
  containers:
  - {name: a, image: a, resources: {claims: [{name: c, request: zone}, {name: d}], requests: {cpu: "1", memory: 1Mi}, limits: {memory: 1Mi}}}
  - {name: b, resources: {requests: {cpu: "1"}}}
status:
  resourceClaimStatuses: [{name: d, resourceClaimName: two}]
`,
}

// staticPod is a pod for static managers, with all that a translation reads.
const staticPod = `
metadata: {name: p, uid: u9, labels: {dra.numa/translate: "true"}, annotations: {a_cache_min: "2", a_policy: gold, a_pstate_ratio: "1.5"}}
spec:
  initContainers:
  - {name: i, image: a, restartPolicy: Always, resources: {requests: {cpu: 100m, memory: 1Mi}, limits: {cpu: 100m, memory: 1Mi}}}
  - {name: j, image: a, resources: {requests: {cpu: "2", memory: 1Mi}, limits: {cpu: "2", memory: 1Mi}}}
  containers:
  - name: a
    image: a
    resources:
      requests: {cpu: "3", memory: 1Mi, hugepages-2Mi: 2Mi, example.com/gpu: 1, intel.com/l3_cache_ways: 2}
      limits: {cpu: "3", memory: 1Mi, hugepages-2Mi: 2Mi, example.com/gpu: 1, intel.com/l3_cache_ways: 2}
`

// Whatever a tenant writes into a pod that is translated, the words are for a terminal, the
// patch is one for the pod that was sent, and what comes out is not translated again.
func TestNoFieldOfAStaticPodIsObeyed(t *testing.T) {
	how := translation()
	how.Twins = map[corev1.ResourceName]string{"example.com/gpu": "gpu.dra.numa"}
	handler := handlerWith(t, cluster(t, nil), true, how)
	translated, refused := 0, 0
	object.Variants(t, staticPod, func(path string, variant any) {
		response := answerTo(t, handler, "/translate", "Pod", variant)
		if response == nil {
			return
		}
		checkWords(t, "/translate of a pod with "+path, response)
		switch {
		case !response.Allowed:
			refused++
		case response.Patch != nil:
			translated++
			var pod any
			if text, err := json.Marshal(variant); err != nil || json.Unmarshal(text, &pod) != nil {
				t.Fatal(err)
			}
			apply(t, pod, response.Patch)
			for _, endpoint := range []string{"/translate", "/mutate"} {
				if again := answerTo(t, handler, endpoint, "Pod", pod); again == nil || again.Patch != nil {
					t.Errorf("%s: %s changes it again: %+v", path, endpoint, again)
				}
			}
		}
	})
	if translated < 20 || refused < 3 {
		t.Errorf("%d variants are translated, and %d refused", translated, refused)
	}
}

// longest is how long a text of the webhook may be. kubectl prints it.
const longest = 16 << 10

// Whatever a tenant writes into a field, the webhook's words are lines that a terminal can
// show, and no field but those that say what a pod requests or claims makes enforce accept
// a pod that requests too little.
func TestNoFieldOfAReviewIsObeyed(t *testing.T) {
	handler := enforcing(t, cluster(t, nil))
	if response := answerTo(t, handler, "/enforce", "Pod", object.Documents(t, reviewed["Pod"])[0]); response == nil || response.Allowed {
		t.Fatalf("the pod as written: %+v, want it refused", response)
	}
	tried := 0
	for kind, text := range reviewed {
		object.Variants(t, text, func(path string, variant any) {
			for _, endpoint := range []string{"/validate", "/mutate", "/enforce"} {
				if response := answerTo(t, handler, endpoint, kind, variant); response != nil {
					checkWords(t, endpoint+" of a "+kind+" with "+path, response)
					if endpoint == "/enforce" && kind == "Pod" && response.Allowed && !strings.Contains(path, "resourceClaims") && !strings.Contains(path, ".requests.") {
						t.Errorf("%s is accepted", path)
					}
				}
				tried++
			}
		})
	}
	if tried < 300 {
		t.Errorf("only %d reviews were tried", tried)
	}
}

// checkWords fails the test if a word of the answer is not for a terminal.
func checkWords(t *testing.T, what string, response *admissionv1.AdmissionResponse) {
	t.Helper()
	words := response.Warnings
	if response.Result != nil {
		words = append(words, response.Result.Message)
	}
	for _, word := range words {
		if fault := object.PrintFault(word); fault != "" || strings.Contains(word, "\n") || len(word) > longest {
			t.Errorf("%s: %d bytes, %s: %.300q", what, len(word), fault, word)
		}
	}
}

// answerTo asks about an object as it is created. It returns nil if there is no answer, which
// the API server takes for a refusal where it matters.
func answerTo(t *testing.T, handler http.Handler, path, kind string, asked any) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{Namespace: "ns", Name: "p", Operation: admissionv1.Create, Kind: metav1.GroupVersionKind{Kind: kind}}
	var err error
	if request.Object.Raw, err = json.Marshal(asked); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: request})
	if err != nil {
		t.Fatal(err)
	}
	recorder := post(handler, path, body)
	if recorder.Code != http.StatusOK {
		if fault := object.PrintFault(strings.TrimSuffix(recorder.Body.String(), "\n")); fault != "" || recorder.Body.Len() > longest {
			t.Errorf("%s of a %s: %s", path, kind, fault)
		}
		return nil
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatal(err)
	}
	return review.Response
}
