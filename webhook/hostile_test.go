package webhook

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
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
