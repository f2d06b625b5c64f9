package webhook

import (
	"encoding/json"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// For any object there is an answer, or a reason why there is none.
func FuzzReview(f *testing.F) {
	for object, kind := range map[string]string{
		slowClaim: "ResourceClaim", badClass: "DeviceClass", plainPod: "Pod", staticPod: "Pod", `{spec: {spec: {devices: {}}}}`: "ResourceClaimTemplate",
	} {
		raw, err := yaml.YAMLToJSON([]byte(object))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(kind, raw)
	}
	handler := handlerWith(f, cluster(f, nil), false, translation())
	f.Fuzz(func(t *testing.T, kind string, object []byte) {
		if !json.Valid(object) {
			return // it comes from the API server
		}
		request := &admissionv1.AdmissionRequest{Namespace: "ns", Kind: metav1.GroupVersionKind{Kind: kind}}
		request.Object.Raw = object
		body, err := json.Marshal(admissionv1.AdmissionReview{Request: request})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/validate", "/enforce", "/mutate", "/translate"} {
			recorder := post(handler, path, body)
			if recorder.Code != http.StatusOK && recorder.Body.Len() == 0 {
				t.Errorf("%s: %d without a reason", path, recorder.Code)
			}
		}
	})
}
