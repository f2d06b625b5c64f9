package webhook

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// enforcing is the webhook of a cluster, which also has the claim "alternatives".
func enforcing(t *testing.T, client *fake.Clientset) http.Handler {
	t.Helper()
	claim := object.Parse[resourceapi.ResourceClaim](t, `
metadata: {name: alternatives, namespace: ns}
spec: {devices: {requests: [{name: zone, firstAvailable: [
  {name: large, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 8}}},
  {name: small, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4, memory: 2Gi}}}]}]}}
`)
	if _, err := client.ResourceV1().ResourceClaims("ns").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return handlerFrom(t, client, true)
}

// reserve allocates 2 CPUs for the claim "two", for the pod with the UID u1.
func reserve(t *testing.T, client *fake.Clientset) {
	t.Helper()
	claims := client.ResourceV1().ResourceClaims("ns")
	claim, err := claims.Get(t.Context(), "two", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status = *object.Parse[resourceapi.ResourceClaimStatus](t, `
allocation: {devices: {results: [{driver: dra.numa, request: zone, pool: node, device: numa-0, consumedCapacity: {cpu: 2}}]}}
reservedFor: [{resource: pods, name: first, uid: u1}]
`)
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func podWith(claim, resources string) string {
	return `{metadata: {name: p, uid: u9}, spec: {resourceClaims: [{name: c, ` + claim + `}], containers: [{name: a, resources: {claims: [{name: c}]` + resources + `}}]}}`
}

func TestEnforce(t *testing.T) {
	const (
		lacks   = "spec.containers: the requests lack "
		unknown = "spec.resourceClaims[0]: what the claim may hold is not known: "
		hold    = ", which the pod's claims may hold"
		lower   = "; until it is known, a resize may lower no request"
	)
	// missing has a claim that is not there, and 8 CPUs of another one.
	missing := func(cpu string) string {
		return `{metadata: {name: p, uid: u9}, spec: {resourceClaims: [{name: c, resourceClaimName: none}, {name: d, resourceClaimName: alternatives}],
			containers: [{name: a, resources: {claims: [{name: c}, {name: d}], requests: {memory: 2Gi, cpu: ` + cpu + `}}}, {name: b}]}}`
	}
	client := cluster(t, nil)
	handler := enforcing(t, client)
	reserve(t, client)
	for name, row := range map[string]struct{ pod, old, refused, warning string }{
		"nothing requested":        {podWith("resourceClaimTemplateName: three", ""), "", lacks + "cpu 4, memory 1Gi" + hold, ""},
		"all requested":            {podWith("resourceClaimTemplateName: three", ", requests: {cpu: 4, memory: 1Gi}"), "", "", ""},
		"more requested":           {podWith("resourceClaimTemplateName: three", ", requests: {cpu: 5, memory: 2Gi}"), "", "", ""},
		"one CPU less":             {podWith("resourceClaimTemplateName: three", ", requests: {cpu: 3, memory: 1Gi}"), "", lacks + "cpu 1" + hold, ""},
		"a limit below the claim":  {podWith("resourceClaimTemplateName: three", ", requests: {cpu: 3, memory: 1Gi}, limits: {cpu: 3}"), "", lacks + "cpu 1" + hold + "; the limits are too low by cpu 1", ""},
		"no template":              {podWith("resourceClaimTemplateName: none", ", requests: {cpu: 64}"), "", unknown + `there is no claim template "none"`, ""},
		"no claim":                 {podWith("resourceClaimName: none", ", requests: {cpu: 64}"), "", unknown + `there is no claim "none"`, ""},
		"a claim of another pod":   {podWith("resourceClaimName: two", ""), "", lacks + "cpu 2" + hold, ""},
		"and all of it":            {podWith("resourceClaimName: two", ", requests: {cpu: 2}"), "", "", ""},
		"one alternative":          {podWith("resourceClaimName: alternatives", ", requests: {cpu: 4, memory: 2Gi}"), "", lacks + "cpu 4" + hold, ""},
		"the largest alternatives": {podWith("resourceClaimName: alternatives", ", requests: {cpu: 8, memory: 2Gi}"), "", "", ""},
		"no claims":                {"{metadata: {name: p}, spec: {containers: [{name: a}]}}", "", "", ""},
		"resize to the claim": {
			podWith("resourceClaimName: two", ", requests: {cpu: 2}"), podWith("resourceClaimName: two", ", requests: {cpu: 4}"), "", "",
		},
		"resize below the claim": {
			podWith("resourceClaimName: two", ", requests: {cpu: 1}"), podWith("resourceClaimName: two", ", requests: {cpu: 4}"), lacks + "cpu 1" + hold, "",
		},
		"resize of what a pod from before lacks": {
			podWith("resourceClaimName: two", ", requests: {memory: 1Gi}"), podWith("resourceClaimName: two", ""), "", lacks + "cpu 2" + hold,
		},
		"resize closer to the claim": {
			podWith("resourceClaimName: two", ", requests: {cpu: 1500m}"), podWith("resourceClaimName: two", ", requests: {cpu: 1}"), "", lacks + "cpu 500m" + hold,
		},
		"resize that lacks more": {
			podWith("resourceClaimName: two", ", requests: {cpu: 500m}"), podWith("resourceClaimName: two", ", requests: {cpu: 1}"), lacks + "cpu 1500m" + hold, "",
		},
		// The claim of a pod that runs exists, whatever became of the template. Until there is
		// one, nobody knows what the pod will hold.
		"resize of a pod that waits for a template": {
			podWith("resourceClaimTemplateName: none", ", requests: {cpu: 2}"), podWith("resourceClaimTemplateName: none", ", requests: {cpu: 4}"),
			unknown + `there is no claim template "none"` + lower, "",
		},
		"resize of a pod whose template is gone": {
			podWith("resourceClaimTemplateName: none", ", requests: {cpu: 2}"), strings.Replace(podWith("resourceClaimTemplateName: none", ", requests: {cpu: 4}"), "spec:", "status: {resourceClaimStatuses: [{name: c, resourceClaimName: two}]}, spec:", 1),
			"", "",
		},
		"resize to more while a claim is missing": {
			podWith("resourceClaimName: none", ", requests: {cpu: 4}"), podWith("resourceClaimName: none", ", requests: {cpu: 2}"),
			"", unknown + `there is no claim "none"`,
		},
		"resize of something else while a claim is missing": {
			podWith("resourceClaimName: none", ", requests: {cpu: 4, ephemeral-storage: 1}"), podWith("resourceClaimName: none", ", requests: {cpu: 4, ephemeral-storage: 2}"),
			"", unknown + `there is no claim "none"`,
		},
		"resize to less memory while a claim is missing": {
			podWith("resourceClaimName: none", ", requests: {cpu: 4, memory: 1Gi}"), podWith("resourceClaimName: none", ", requests: {cpu: 4, memory: 2Gi}"),
			unknown + `there is no claim "none"` + lower, "",
		},
		"below another claim while a claim is missing": {missing("100m"), missing("8"), unknown + `there is no claim "none"` + lower, ""},
		"as large as another claim while a claim is missing": {
			missing("8"), missing("8"), "", unknown + `there is no claim "none"`,
		},
		"resize that moves a request while a claim is missing": {
			strings.Replace(missing("2"), "{name: b}", "{name: b, resources: {requests: {cpu: 6}}}", 1), missing("8"), unknown + `there is no claim "none"` + lower, "",
		},
		"a template in a PodGroup": {
			strings.Replace(podWith("resourceClaimTemplateName: three", ", requests: {cpu: 4, memory: 1Gi}"), "spec: {", "spec: {schedulingGroup: {podGroupName: g}, ", 1), "",
			unknown + `the pod belongs to PodGroup "g", which may have a claim for this entry already: name a claim instead of a template`, "",
		},
		"a claim in a PodGroup": {
			strings.Replace(podWith("resourceClaimName: two", ", requests: {cpu: 2}"), "spec: {", "spec: {schedulingGroup: {podGroupName: g}, ", 1), "", "", "",
		},
	} {
		response := ask(t, handler, "/enforce", "Pod", row.pod, row.old)
		refused := ""
		if !response.Allowed {
			refused = response.Result.Message
		}
		if refused != row.refused || strings.Join(response.Warnings, "\n") != row.warning || response.Patch != nil {
			t.Errorf("%s: refused %q with warnings %q, want %q and %q", name, refused, response.Warnings, row.refused, row.warning)
		}
	}
}

// What the webhook raises is what it wants, and it does not warn of what it counts.
func TestMutateRaisesToWhatIsEnforced(t *testing.T) {
	client := cluster(t, nil)
	handler := enforcing(t, client)
	reserve(t, client)
	for claim, want := range map[string]string{
		"resourceClaimName: two":          `{"cpu":"2"}`,
		"resourceClaimName: alternatives": `{"cpu":"8","memory":"2Gi"}`,
	} {
		response := ask(t, handler, "/mutate", "Pod", podWith(claim, ""), "")
		var patch []operation
		if err := json.Unmarshal(response.Patch, &patch); err != nil {
			t.Fatalf("%s: %v in %q", claim, err, response.Patch)
		}
		requests, err := json.Marshal(patch[0].Value)
		if err != nil || string(requests) != want {
			t.Errorf("%s: requests %s, %v, want %s", claim, requests, err, want)
		}
		if response = ask(t, handler, "/enforce", "Pod", podWith(claim, ", requests: "+want), ""); !response.Allowed {
			t.Errorf("%s: refused after it was raised: %s", claim, response.Result.Message)
		}
	}
	for _, claim := range []string{"resourceClaimName: two", "resourceClaimName: none"} {
		response := ask(t, handler, "/validate", "Pod", podWith(claim, ", requests: {cpu: 2}"), "")
		if len(response.Warnings) > 0 {
			t.Errorf("%s: warnings %q", claim, response.Warnings)
		}
	}
}

// What is not known because the API server does not answer is not known either.
func TestNothingIsLoweredWhileTheAPIServerFails(t *testing.T) {
	client := cluster(t, nil)
	handler := enforcing(t, client)
	client.PrependReactor("get", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("timeout")
	})
	less, more := podWith("resourceClaimName: two", ", requests: {cpu: 2}"), podWith("resourceClaimName: two", ", requests: {cpu: 4}")
	if response := ask(t, handler, "/enforce", "Pod", less, more); response.Allowed {
		t.Error("a resize to less passes")
	}
	if response := ask(t, handler, "/enforce", "Pod", more, less); !response.Allowed {
		t.Errorf("a resize to more is refused: %s", response.Result.Message)
	}
}

// The scheduler adds claims to requests (KEP-5517).
func TestEnforceLeavesClaimsToAServerThatCounts(t *testing.T) {
	handler := enforcing(t, cluster(t, mapped))
	if response := ask(t, handler, "/enforce", "Pod", podWith("resourceClaimName: none", ""), ""); !response.Allowed {
		t.Errorf("refused: %s", response.Result.Message)
	}
}

// One node cannot switch enforcement off.
func TestEnforceNeedsEveryNodeToMap(t *testing.T) {
	client := cluster(t, mapped)
	slice, err := client.ResourceV1().ResourceSlices().Get(t.Context(), "slice", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice = slice.DeepCopy()
	slice.Name, slice.Spec.Devices[0].NodeAllocatableResources = "another", nil
	if _, err := client.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	handler := enforcing(t, client)
	if response := ask(t, handler, "/enforce", "Pod", podWith("resourceClaimName: none", ""), ""); response.Allowed {
		t.Error("a pod passes")
	}
	if response := ask(t, handler, "/mutate", "Pod", podWith("resourceClaimName: two", ""), ""); response.Patch == nil {
		t.Error("a pod is not mirrored")
	}
}

const smallPods = `{items: [
  {metadata: {name: by-name, namespace: ns, uid: u1}, status: {phase: Pending}, spec: {resourceClaims: [{name: c, resourceClaimName: replaced}],
    containers: [{name: a, resources: {requests: {cpu: 2}, claims: [{name: c}]}}]}},
  {metadata: {name: by-template, namespace: ns, uid: u2}, status: {phase: Pending}, spec: {resourceClaims: [{name: c, resourceClaimTemplateName: three}],
    containers: [{name: a, resources: {requests: {cpu: 4, memory: 1Gi}, claims: [{name: c}]}}]}},
  {metadata: {name: generated, namespace: ns, uid: u3}, spec: {resourceClaims: [{name: c, resourceClaimTemplateName: gone}, {name: d, resourceClaimName: two}],
    containers: [{name: a, resources: {requests: {cpu: 4}, claims: [{name: c}]}}]},
    status: {phase: Pending, resourceClaimStatuses: [{name: c, resourceClaimName: generated-c-x}]}},
  {metadata: {name: of-a-group, namespace: ns, uid: u4}, spec: {schedulingGroup: {podGroupName: group}, resourceClaims: [{name: c, resourceClaimTemplateName: three}],
    containers: [{name: a, resources: {requests: {cpu: 4, memory: 1Gi}, claims: [{name: c}]}}]}, status: {phase: Pending}},
  {metadata: {name: deleted, namespace: ns, uid: u5, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [x]}, status: {phase: Pending},
    spec: {resourceClaims: [{name: c, resourceClaimName: other}], containers: [{name: a, resources: {claims: [{name: c}]}}]}}]}`

// A claim cannot take the place of the one that a waiting pod was compared with, and hold
// more.
func TestEnforceComparesClaimsWithThePodsThatWait(t *testing.T) {
	client := cluster(t, nil)
	for _, pod := range object.Parse[corev1.PodList](t, smallPods).Items {
		if _, err := client.CoreV1().Pods("ns").Create(t.Context(), &pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	handler := enforcing(t, client)
	claim := func(metadata, cpu string) string {
		return `{metadata: {` + metadata + `}, spec: {devices: {requests: [{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: ` + cpu + `}}}}]}}}`
	}
	owned := func(name, kind, pod, uid, annotation string) string {
		version := map[string]string{"Pod": "v1", "PodGroup": "scheduling.k8s.io/v1beta1"}[kind]
		return `name: ` + name + `, annotations: {resource.kubernetes.io/pod-claim-name: ` + annotation + `}, ownerReferences: [{apiVersion: ` + version +
			`, kind: ` + kind + `, name: ` + pod + `, uid: ` + uid + `, controller: true}]`
	}
	for name, row := range map[string]struct {
		claim, old, lacks string // lacks is a part of the reason
	}{
		"no pod waits":                  {claim("name: unknown", "64"), "", ""},
		"of the same size":              {claim("name: replaced", "2"), "", ""},
		"larger":                        {claim("name: replaced", "64"), "", `"by-name"`},
		"generated, as the template is": {claim(owned("by-template-c-x", "Pod", "by-template", "u2", "c"), "4"), "", ""},
		"generated of a larger one":     {claim(owned("by-template-c-x", "Pod", "by-template", "u2", "c"), "6"), "", `"by-template"`},
		"forged for another entry":      {claim(owned("by-template-c-x", "Pod", "by-template", "u2", "d"), "64"), "", ""},
		"of a pod that is gone":         {claim(owned("by-template-c-x", "Pod", "by-template", "u8", "c"), "64"), "", ""},
		"in the place of the generated one": {
			claim(owned("generated-c-x", "Pod", "generated", "u3", "d"), "64"), "", `"generated"`,
		},
		"together with another claim": {claim(owned("generated-c-x", "Pod", "generated", "u3", "c"), "3"), "", `"generated"`},
		"and as large as fits":        {claim(owned("generated-c-x", "Pod", "generated", "u3", "c"), "2"), "", ""},
		"of the pod's group":          {claim(owned("group-c-x", "PodGroup", "group", "g1", "c"), "6"), "", `"of-a-group"`},
		"given to a pod later": {
			claim(owned("free", "Pod", "by-template", "u2", "c"), "6"), claim("name: free", "6"), `"by-template"`,
		},
		"for a pod that is being deleted": {claim("name: other", "64"), "", ""},
		"as if of an extended resource": {
			claim(`name: x, annotations: {resource.kubernetes.io/extended-resource-claim: "true"}`, "64"), "", "remove the annotation",
		},
		"of an extended resource": {
			`{metadata: {name: x, annotations: {resource.kubernetes.io/extended-resource-claim: "true"}}, spec: {devices: {requests: [{name: z, exactly: {deviceClassName: zone.dra.numa}}]}}}`,
			"", "",
		},
	} {
		response := ask(t, handler, "/enforce", "ResourceClaim", row.claim, row.old)
		refused := ""
		if !response.Allowed {
			refused = response.Result.Message
		}
		if (refused == "") != (row.lacks == "") || !strings.Contains(refused, row.lacks) {
			t.Errorf("%s: refused %q, want a reason with %q", name, refused, row.lacks)
		}
	}
	response := ask(t, handler, "/enforce", "ResourceClaim", claim("name: replaced", "64"), "")
	want := `spec.devices.requests: pod "by-name" waits for this claim, but does not request all of it: ` +
		"spec.containers: the requests lack cpu 62, which the pod's claims may hold"
	if diff := cmp.Diff(want, response.Result.Message); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// Only Kubernetes gives claims random names. A user who pretends to generate a claim of
// one pod may mean another one.
func TestOnlyKubernetesGeneratesClaims(t *testing.T) {
	claim := object.Parse[resourceapi.ResourceClaim](t, "{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]}}")
	const controller = "system:serviceaccount:kube-system:resource-claim-controller"
	reviewer := &Reviewer{known: (&lookups{selectors: probe.New(), creators: []string{controller, "system:kube-controller-manager"}}).during(t.Context())}
	for _, row := range []struct {
		user      string
		operation admissionv1.Operation
		want      string
	}{
		{controller, admissionv1.Create, "p"},
		{"system:kube-controller-manager", admissionv1.Create, "p"},
		{controller, admissionv1.Update, ""},
		{"system:serviceaccount:tenant:resource-claim-controller", admissionv1.Create, ""},
		{"jane", admissionv1.Create, ""},
	} {
		request := &admissionv1.AdmissionRequest{Operation: row.operation}
		request.UserInfo.Username = row.user
		if got := reviewer.onlyPod(request, claim); got != row.want {
			t.Errorf("%s of %s: only pod %q, want %q", row.operation, row.user, got, row.want)
		}
	}
}
