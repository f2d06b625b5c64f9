package webhook

import (
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// translation is the default of the chart.
func translation() *Translation {
	return &Translation{Options: translate.Options{
		Scope: translate.ScopeContainer, Policy: translate.PolicySingleNUMANode, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: 2,
	}}
}

// gpuCluster has a class of GPUs that says itself that it is for example.com/gpu. Cores have
// as many threads.
func gpuCluster(t *testing.T, threads int64) *fake.Clientset {
	t.Helper()
	client := cluster(t, func(slice *resourceapi.ResourceSlice) {
		capacity := slice.Spec.Devices[0].Capacity
		capacity["cpu"].RequestPolicy.ValidRange.Step = resource.NewQuantity(threads, resource.DecimalSI)
	})
	class := object.Parse[resourceapi.DeviceClass](t,
		`{metadata: {name: gpu.example.com}, spec: {extendedResourceName: example.com/gpu, selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}}`)
	if _, err := client.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client
}

// guaranteed is a pod with containers whose requests are their limits.
func guaranteed(metadata string, limits ...string) string {
	text := "{metadata: {" + metadata + "}, spec: {containers: ["
	for i, limit := range limits {
		text += "{name: " + string(rune('a'+i)) + ", resources: {requests: {" + limit + "}, limits: {" + limit + "}}}, "
	}
	return text + "]}}"
}

func TestTranslate(t *testing.T) {
	const four = "cpu: 4, memory: 1Gi"
	const name = "numa-4b4c4093ee90a5225518b356f84ad35b"
	translated := `[{"op":"add","path":"/spec/containers/0/resources/claims","value":[{"name":"numa","request":"a"}]},` +
		`{"op":"add","path":"/spec/resourceClaims","value":[{"name":"numa","resourceClaimTemplateName":"` + name + `"}]},` +
		`{"op":"add","path":"/metadata/annotations","value":{"dra.numa/translated":"{\"a\":[\"a\"]}"}}]`
	const refused = "spec: the pod cannot have CPUs of its own: "
	clusters := map[int64]*fake.Clientset{0: gpuCluster(t, 2), 4: gpuCluster(t, 4)}
	for what, row := range map[string]struct {
		pod, old      string
		change        func(*Translation)
		threads       int64
		want          string // a part of the patch, or all of it if it begins with [
		warns, refuse string
	}{
		"whole CPUs":                 {pod: guaranteed("name: p", four), want: translated},
		"a name that is generated":   {pod: guaranteed("generateName: p-", four), want: translated},
		"asked for by the pod":       {pod: guaranteed(`name: p, labels: {dra.numa/translate: "true"}`, four), want: translated},
		"opted out":                  {pod: guaranteed(`name: p, labels: {dra.numa/translate: "false"}`, four)},
		"stored already":             {pod: guaranteed("name: p", four), old: guaranteed("name: p", four)},
		"not switched on":            {pod: guaranteed("name: p", four), change: func(how *Translation) { *how = Translation{} }},
		"Burstable":                  {pod: "{spec: {containers: [{name: a, resources: {requests: {cpu: 4}}}]}}"},
		"BestEffort":                 {pod: "{spec: {containers: [{name: a}]}}"},
		"parts of CPUs":              {pod: guaranteed("name: p", "cpu: 500m, memory: 1Gi")},
		"a claim of its own":         {pod: strings.Replace(guaranteed("name: p", four), "spec: {", "spec: {resourceClaims: [{name: c, resourceClaimName: two}], ", 1)},
		"a sidecar from another one": {pod: strings.Replace(guaranteed("name: p", four), "containers: [", "containers: [{name: proxy, resources: {requests: {cpu: 100m}}}, ", 1)},
		"a device": {
			pod:  guaranteed("name: p", four+", example.com/gpu: 1"),
			want: `{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"4","memory":"1Gi"}},{"op":"add","path":"/spec/containers/0/resources/limits","value":{"cpu":"4","memory":"1Gi"}}`,
		},
		"a twin of the administrator": {
			pod:    guaranteed("name: p", four+", example.com/nic: 1"),
			change: func(how *Translation) { how.Twins = map[corev1.ResourceName]string{"example.com/nic": "nic.dra.numa"} },
			want:   `"a--nic-0"`,
		},
		"annotations": {
			pod:  guaranteed("name: p, annotations: {k: v}", four),
			want: `{"op":"add","path":"/metadata/annotations/dra.numa~1translated","value":"{\"a\":[\"a\"]}"}]`,
		},
		"part of a core, rounded": {
			pod:   guaranteed("name: p", "cpu: 3, memory: 1Gi"),
			want:  `{"op":"add","path":"/spec/containers/0/resources/limits","value":{"cpu":"4","memory":"1Gi"}}`,
			warns: `spec: container "a" has 4 CPUs in the place of 3: whole cores of 2 threads`,
		},
		"part of a core, refused": {
			pod:    guaranteed("name: p", "cpu: 3, memory: 1Gi"),
			change: func(how *Translation) { how.PartOfCore = translate.PartOfCoreLeave },
			refuse: refused + `container "a": 3 CPUs are no whole cores of 2 threads`,
		},
		"part of a core, left": {
			pod:    guaranteed("name: p", "cpu: 3, memory: 1Gi"),
			change: func(how *Translation) { how.PartOfCore, how.Leave = translate.PartOfCoreLeave, true },
			warns:  `spec: the pod has no CPUs of its own: container "a": 3 CPUs are no whole cores of 2 threads`,
		},
		"cores of four threads": {
			pod: guaranteed("name: p", "cpu: 6, memory: 1Gi"), threads: 4,
			refuse: refused + `its claim may hold cpu 2 more than its limits, because cores of a node have more threads than the translation assumes`,
		},
		"cores of four threads, without a limit": {
			pod: guaranteed("name: p", "cpu: 6, memory: 1Gi"), threads: 4,
			change: func(how *Translation) { how.CPULimit = translate.CPULimitLift },
			refuse: refused + `its claim may hold cpu 2 more than its limits, because cores of a node have more threads than the translation assumes`,
		},
		"a long annotation": {
			pod:    guaranteed("name: p, annotations: {a_policy: "+strings.Repeat("x", 10_000)+"}", four+", intel.com/l3_cache_ways: 2"),
			change: func(how *Translation) { how.Leave = true },
			warns:  `spec: the pod has no CPUs of its own: container "a": annotation a_policy: "`,
		},
	} {
		t.Run(what, func(t *testing.T) {
			how := translation()
			if row.change != nil {
				row.change(how)
			}
			if how.Scope == "" {
				how = nil
			}
			handler := handlerWith(t, clusters[row.threads], false, how)
			response := ask(t, handler, "/translate", "Pod", row.pod, row.old)
			refused := ""
			if !response.Allowed {
				refused = response.Result.Message
			}
			if refused != row.refuse {
				t.Errorf("refused %q, want %q", refused, row.refuse)
			}
			if warns := strings.Join(response.Warnings, "\n"); !strings.HasPrefix(warns, row.warns) || row.warns == "" && warns != "" || len(warns) > 256 {
				t.Errorf("warnings %q, want %q", warns, row.warns)
			}
			if got := string(response.Patch); got != row.want && (!strings.Contains(got, row.want) || row.want == "" || row.want[0] == '[') {
				t.Errorf("patch %s, want %s", got, row.want)
			}
		})
	}
}

// A pod that requests what its claim holds would count twice.
func TestNothingIsTranslatedWhereTheSchedulerCountsClaims(t *testing.T) {
	handler := handlerWith(t, cluster(t, mapped), false, translation())
	response := ask(t, handler, "/translate", "Pod", guaranteed("name: p", "cpu: 4, memory: 1Gi"), "")
	if response.Allowed || !strings.Contains(response.Result.Message, "so the pod would count twice") {
		t.Errorf("%+v", response)
	}
}

// patched applies a patch that only adds to a pod in YAML.
func patched(t *testing.T, text string, patch []byte) string {
	t.Helper()
	var pod any
	if err := yaml.Unmarshal([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	apply(t, pod, patch)
	result, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(result)
}

func apply(t *testing.T, pod any, patch []byte) {
	t.Helper()
	var operations []operation
	if err := json.Unmarshal(patch, &operations); err != nil {
		t.Fatalf("%v in %q", err, patch)
	}
	for _, op := range operations {
		keys := strings.Split(strings.TrimPrefix(op.Path, "/"), "/")
		at := pod
		for _, key := range keys[:len(keys)-1] {
			if list, is := at.([]any); is {
				i, err := strconv.Atoi(key)
				if err != nil {
					t.Fatal(err)
				}
				at = list[i]
				continue
			}
			at = at.(map[string]any)[key]
		}
		at.(map[string]any)[strings.NewReplacer("~1", "/", "~0", "~").Replace(keys[len(keys)-1])] = op.Value
	}
}

// For each pod whose translation is written down: one patch makes it, keeps fields that the
// webhook does not know, and nothing that asks afterwards changes, refuses or warns of
// anything, although the template does not exist.
func TestTranslatedPodsPassEveryOtherReview(t *testing.T) {
	inputs, err := filepath.Glob("../deviceclasses/translate/testdata/*.in.yaml")
	if err != nil || len(inputs) < 5 {
		t.Fatalf("%d pods, %v", len(inputs), err)
	}
	for _, file := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.yaml"), func(t *testing.T) {
			input := struct {
				Options translate.Options `json:"options"`
				Pod     map[string]any    `json:"pod"`
			}{Options: translation().Options}
			if err := yaml.Unmarshal([]byte(files.Read(t, file)), &input); err != nil {
				t.Fatal(err)
			}
			spec := input.Pod["spec"].(map[string]any)
			spec["fieldOfTomorrow"] = "kept"
			for _, list := range []string{"initContainers", "containers"} {
				containers, _ := spec[list].([]any)
				for _, one := range containers {
					container := one.(map[string]any)
					container["fieldOfTomorrow"] = "kept"
					if resources := container["resources"].(map[string]any); resources["requests"] == nil {
						resources["requests"] = maps.Clone(resources["limits"].(map[string]any)) // as the API server does
					}
				}
			}
			text, err := yaml.Marshal(input.Pod)
			if err != nil {
				t.Fatal(err)
			}
			var want struct{ Pod *corev1.Pod }
			if err := yaml.Unmarshal([]byte(files.Read(t, strings.TrimSuffix(file, ".in.yaml")+".out.yaml")), &want); err != nil {
				t.Fatal(err)
			}

			client := gpuCluster(t, input.Options.ThreadsPerCore)
			before := len(client.Actions())
			for _, enforced := range []bool{false, true} {
				handler := handlerWith(t, client, enforced, &Translation{Options: input.Options})
				response := ask(t, handler, "/translate", "Pod", string(text), "")
				if !response.Allowed {
					t.Fatal(response.Result.Message)
				}
				result := patched(t, string(text), response.Patch)
				if diff := cmp.Diff(want.Pod, podOfText(t, result)); diff != "" {
					t.Errorf("translated (-want +got):\n%s", diff)
				}
				if kept, had := strings.Count(result, "fieldOfTomorrow: kept"), strings.Count(string(text), "fieldOfTomorrow: kept"); kept != had {
					t.Errorf("%d of %d fields are kept", kept, had)
				}
				for _, path := range []string{"/translate", "/mutate", "/enforce", "/validate"} {
					if response := ask(t, handler, path, "Pod", result, ""); !response.Allowed || response.Patch != nil || len(response.Warnings) > 0 {
						t.Errorf("%s: %+v, patch %s", path, response, response.Patch)
					}
				}
			}
			for _, action := range client.Actions()[before:] {
				if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
					t.Errorf("the webhook has written: %+v", action)
				}
			}
		})
	}
}

// A dry run asks as every other request does, and what it is told is the same.
func TestDryRunIsToldTheSame(t *testing.T) {
	handler := handlerWith(t, gpuCluster(t, 2), true, translation())
	body := reviewOf(t, "Pod", guaranteed("generateName: p-", "cpu: 4, memory: 1Gi"), "")
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		t.Fatal(err)
	}
	review.Request.DryRun = new(true)
	dry, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	first, second := post(handler, "/translate", body), post(handler, "/translate", dry)
	if first.Code != http.StatusOK || first.Body.String() != second.Body.String() || !strings.Contains(first.Body.String(), `"patch"`) {
		t.Errorf("%s, and in a dry run %s", first.Body, second.Body)
	}
}

// podOfText drops fields that nobody knows.
func podOfText(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.Unmarshal([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// translatedPod is a pod as /translate changes it.
func translatedPod(t *testing.T, handler http.Handler, text string) string {
	t.Helper()
	return patched(t, text, ask(t, handler, "/translate", "Pod", text, "").Patch)
}

// Another webhook may add a container after the translation. It has no request of the claim,
// and the pod can still get its template.
func TestContainerThatIsAddedLaterHasNoRequest(t *testing.T) {
	handler := handlerWith(t, gpuCluster(t, 2), true, translation())
	text := translatedPod(t, handler, guaranteed("name: p", "cpu: 4, memory: 1Gi"))
	for name, added := range map[string]string{
		"Guaranteed": "{name: proxy, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}}}",
		"BestEffort": "{name: proxy, resources: {}}",
	} {
		pod := object.Parse[corev1.Pod](t, text)
		pod.Spec.Containers = append([]corev1.Container{*object.Parse[corev1.Container](t, added)}, pod.Spec.Containers...)
		with, err := yaml.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/translate", "/mutate", "/enforce"} {
			if response := ask(t, handler, path, "Pod", string(with), ""); !response.Allowed || response.Patch != nil {
				t.Errorf("%s: %s: %+v, patch %s", name, path, response, response.Patch)
			}
		}
	}
}

// A pod counts with the template that is stored, even if a tenant has written it, and
// otherwise with the one that it asks for. Whoever names more than he requests is refused.
func TestTranslatedPodsGetNoMoreThanTheyRequest(t *testing.T) {
	plain := handlerWith(t, gpuCluster(t, 2), true, translation())
	text := translatedPod(t, plain, guaranteed("name: p, uid: u9", "cpu: 4, memory: 1Gi"))
	large := translatedPod(t, plain, guaranteed("name: p, uid: u9", "cpu: 8, memory: 1Gi"))
	name := translate.TemplateOf(object.Parse[corev1.Pod](t, text))
	const unknown = "spec.resourceClaims[0]: what the claim may hold is not known: there is no claim template "
	for what, row := range map[string]struct {
		pod    string
		stored string // CPUs of the template that is stored
		want   string // why the pod is refused
	}{
		"not made yet":           {pod: text},
		"as it should be":        {pod: text, stored: "4"},
		"smaller":                {pod: text, stored: "2"},
		"larger":                 {pod: text, stored: "6", want: "spec.containers: the requests lack cpu 2, which the pod's claims may hold; the limits are too low by cpu 2"},
		"the name of a larger":   {pod: strings.ReplaceAll(text, name, translate.TemplateOf(object.Parse[corev1.Pod](t, large))), want: unknown},
		"fewer CPUs afterwards":  {pod: strings.ReplaceAll(text, `cpu: 4`, `cpu: 2`), want: unknown},
		"another claim, as well": {pod: strings.Replace(text, "resourceClaims:\n", "resourceClaims:\n  - {name: two, resourceClaimName: two}\n", 1), want: "spec.containers: the requests lack cpu 2, which the pod's claims may hold; the limits are too low by cpu 2"},
	} {
		t.Run(what, func(t *testing.T) {
			client := gpuCluster(t, 2)
			if row.stored != "" {
				template := object.Parse[resourceapi.ResourceClaimTemplate](t, `
metadata: {name: `+name+`, namespace: ns}
spec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: `+row.stored+`, memory: 1Gi}}}}]}}}`)
				if _, err := client.ResourceV1().ResourceClaimTemplates("ns").Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			response := ask(t, handlerWith(t, client, true, translation()), "/enforce", "Pod", row.pod, "")
			refused := ""
			if !response.Allowed {
				refused = response.Result.Message
			}
			if (refused == "") != (row.want == "") || !strings.HasPrefix(refused, row.want) {
				t.Errorf("refused %q, want %q", refused, row.want)
			}
		})
	}

	// The template is altered after the pod was created, so Kubernetes generates a larger claim.
	client := gpuCluster(t, 2)
	pod := object.Parse[corev1.Pod](t, text)
	pod.Namespace, pod.Status.Phase = "ns", corev1.PodPending
	if _, err := client.CoreV1().Pods("ns").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	handler := handlerWith(t, client, true, translation())
	for cpus, allowed := range map[string]bool{"4": true, "64": false} {
		claim := `{metadata: {name: p-numa-x, annotations: {resource.kubernetes.io/pod-claim-name: numa}, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u9, controller: true}]},
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: ` + cpus + `, memory: 1Gi}}}}]}}}`
		if response := ask(t, handler, "/enforce", "ResourceClaim", claim, ""); response.Allowed != allowed {
			t.Errorf("a claim of %s CPUs: %+v", cpus, response)
		}
	}
}

// Without the template, nothing is known of the claim if pods are not translated.
func TestTranslationThatIsOffCountsNothing(t *testing.T) {
	text := translatedPod(t, handlerWith(t, gpuCluster(t, 2), true, translation()), guaranteed("name: p", "cpu: 4, memory: 1Gi"))
	if response := ask(t, handlerFrom(t, gpuCluster(t, 2), true), "/enforce", "Pod", text, ""); response.Allowed {
		t.Error("a pod passes whose claim nobody knows")
	}
}
