package translate_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const fullPod = `
metadata:
  name: p
  annotations: {main_cache_min: "2", main_pstate_ratio: "1.5", main_mba_percentage: "40"}
spec:
  os: {name: linux}
  initContainers:
  - {name: init, resources: {limits: {cpu: "2", memory: 64Mi, example.com/gpu: "1"}}}
  - {name: side, restartPolicy: Always, resources: {limits: {cpu: 500m, memory: 64Mi}}}
  containers:
  - name: main
    resources:
      limits: {cpu: "4", memory: 256Mi, hugepages-2Mi: 8Mi, example.com/gpu: "2", intel.com/l3_cache_ways: "3"}
      requests: {cpu: "4", memory: 256Mi, hugepages-2Mi: 8Mi, example.com/gpu: "2", intel.com/l3_cache_ways: "3"}
  - {name: other, resources: {limits: {cpu: "2", memory: 64Mi, hugepages-1Gi: 2Gi}}}
`

// A webhook is asked before the API server has checked a pod, so amounts may be anything.
func TestPodsOfATenantAreTranslatedOrRefused(t *testing.T) {
	translated, refused := 0, 0
	try := func(text string) {
		pod := &corev1.Pod{}
		if json.Unmarshal([]byte(text), pod) != nil {
			return
		}
		for _, policy := range []string{translate.PolicySingleNUMANode, translate.PolicyBestEffort} {
			o := options()
			o.Policy, o.Twins = policy, map[corev1.ResourceName]string{"example.com/gpu": "gpu.dra.numa"}
			if got, err := translate.Pod(pod.DeepCopy(), o); err != nil {
				refused++
			} else if translated++; got.Template == "" {
				t.Errorf("%s has no template", text)
			}
		}
	}
	object.Variants(t, strings.TrimSpace(fullPod), func(_ string, variant any) {
		text, err := json.Marshal(variant)
		if err != nil {
			t.Fatal(err)
		}
		try(string(text))
	})
	for _, limits := range []string{
		`"cpu": "9e18"`, `"cpu": "2", "memory": "9223372036854775807"`, `"cpu": "2", "hugepages-1e300000000": "1"`, `"cpu": "2", "hugepages--2Mi": "1"`,
		`"cpu": "2", "hugepages-9223372036854775807": "1"`, `"cpu": "2", "example.com/gpu": "0.5"`, `"cpu": "2", "example.com/gpu": "33"`,
	} {
		try(`{"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "1Gi", ` + limits + `}}}]}}`)
	}
	if translated == 0 || refused == 0 {
		t.Errorf("%d are translated, and %d refused", translated, refused)
	}
}
