package apiserver

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

// unchanged is the spec of a pod for static managers. There is no node for it.
const unchanged = `{terminationGracePeriodSeconds: 0, containers: [{name: app, image: none, resources: {requests: {cpu: 2, memory: 1Gi}, limits: {cpu: 2, memory: 1Gi}}}]}`

// labelled is a namespace whose pods are translated: all, or those that ask for it.
func labelled(t *testing.T, admin kubernetes.Interface, value string) string {
	t.Helper()
	namespace := create(t, admin.CoreV1().Namespaces(), object.Parse[corev1.Namespace](t, `metadata: {generateName: static-, labels: {dra.numa/translate: "`+value+`"}}`)).Name
	eventually(t, "pods can be created", func() bool {
		_, err := admin.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return namespace
}

func podOf(t *testing.T, metadata string) *corev1.Pod {
	t.Helper()
	return object.Parse[corev1.Pod](t, "{metadata: {"+metadata+"}, spec: "+unchanged+"}")
}

// injectors are webhooks of somebody else: one that the API server asks before ours, and one
// that it asks after. Each changes the pods of the namespace that have its name as a label.
func injectors(t *testing.T, admin kubernetes.Interface, namespace string, patches map[string]string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, PatchType: new(admissionv1.PatchTypeJSONPatch), Patch: []byte(patches[strings.TrimPrefix(r.URL.Path, "/")]),
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review) // an error means that the API server has given up
	}))
	t.Cleanup(server.Close)
	trusted := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name := range patches {
		create(t, admin.AdmissionregistrationV1().MutatingWebhookConfigurations(), &admissionregistration.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Webhooks: []admissionregistration.MutatingWebhook{{
				Name: name + ".example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistration.SideEffectClassNone),
				ClientConfig:      admissionregistration.WebhookClientConfig{URL: new(server.URL + "/" + name), CABundle: trusted},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{name: "yes"}},
				Rules: []admissionregistration.RuleWithOperations{{
					Operations: []admissionregistration.OperationType{admissionregistration.Create},
					Rule:       admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}},
			}},
		})
	}
}

// Other webhooks change pods before and after ours, which is asked again if they do.
func checkInjected(t *testing.T, admin kubernetes.Interface, namespace, name string, options translate.Options) {
	t.Helper()
	const sidecar = `[{"op": "add", "path": "/spec/containers/-", "value": {"name": "proxy", "image": "none"}}]`
	const limits = `[{"op": "add", "path": "/spec/containers/0/resources", "value": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}}]`
	const amounts = `[{"op": "add", "path": "/spec/containers/0/resources/limits/cpu", "value": "4"}, {"op": "add", "path": "/spec/containers/0/resources/requests/cpu", "value": "4"}]`
	injectors(t, admin, namespace, map[string]string{"a-sidecar": sidecar, "z-sidecar": sidecar, "z-limits": limits, "a-amounts": amounts, "z-amounts": amounts})
	pods := admin.CoreV1().Pods(namespace)
	var before, after, limited, larger *corev1.Pod
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	eventually(t, "the injectors are asked", func() bool {
		try := func(pod *corev1.Pod) *corev1.Pod {
			made, err := pods.Create(t.Context(), pod, dryRun)
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		before, after = try(podOf(t, `name: p, labels: {a-sidecar: "yes"}`)), try(podOf(t, `name: p, labels: {z-sidecar: "yes"}`))
		limited = try(object.Parse[corev1.Pod](t, `{metadata: {name: p, labels: {z-limits: "yes"}}, spec: {containers: [{name: app, image: none}]}}`))
		larger = try(podOf(t, `name: p, labels: {a-amounts: "yes"}`))
		return len(before.Spec.Containers) == 2 && len(after.Spec.Containers) == 2 && len(limited.Spec.Containers[0].Resources.Limits) > 0 &&
			larger.Spec.Containers[0].Resources.Limits.Cpu().Value() == 4
	})
	if len(before.Spec.ResourceClaims) > 0 {
		t.Errorf("a pod with a sidecar without limits has claims: %v", before.Spec.ResourceClaims)
	}
	if translate.TemplateOf(after) != name || len(after.Spec.Containers[1].Resources.Claims) > 0 {
		t.Errorf("with a sidecar that is added later: %+v", after.Spec)
	}
	if again, _, err := translate.Again(after, options); err != nil || again != name {
		t.Errorf("the template of the pod with a later sidecar: %q, %v", again, err)
	}
	if translate.TemplateOf(limited) != name {
		t.Errorf("a pod that gets its limits later has the claims %v", limited.Spec.ResourceClaims)
	}
	if again, _, err := translate.Again(larger, options); err != nil || again == name {
		t.Errorf("the template of a pod that gets more CPUs before: %q, %v", again, err)
	}
	// Nobody asks again about a pod with claims: its template is that of the amounts of before.
	eventually(t, "a pod that gets more CPUs later is refused, because nobody makes its template", func() bool {
		_, err := pods.Create(t.Context(), podOf(t, `name: p, labels: {z-amounts: "yes"}`), dryRun)
		return err != nil && strings.HasSuffix(err.Error(), fmt.Sprintf("there is no claim template %q", name))
	})
}

// checkRollouts changes a Deployment and changes it back, as a rollback does. What kubectl diff
// asks has no difference, because nothing in a workload is translated.
func checkRollouts(t *testing.T, admin kubernetes.Interface, namespace, name string) {
	t.Helper()
	apply := func(cpus string, dryRun ...string) *appsv1.Deployment {
		spec := strings.ReplaceAll(unchanged, "cpu: 2", "cpu: "+cpus)
		text := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: rolls}, spec: {strategy: {type: Recreate}, selector: {matchLabels: {app: rolls}}, template: {metadata: {labels: {app: rolls}}, spec: ` + spec + "}}}"
		made, err := admin.AppsV1().Deployments(namespace).Patch(t.Context(), "rolls", types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "user", DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	// newest waits for a pod of the Deployment that was not there before.
	seen := map[types.UID]bool{}
	newest := func() (template string) {
		eventually(t, "the Deployment has another pod", func() bool {
			list, err := admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=rolls"})
			if err != nil {
				t.Fatal(err)
			}
			for _, pod := range list.Items {
				if pod.DeletionTimestamp == nil && !seen[pod.UID] {
					seen[pod.UID], template = true, translate.TemplateOf(&pod)
					return true
				}
			}
			return false
		})
		return template
	}
	first := apply("2")
	if got := newest(); got != name {
		t.Errorf("the pod of the Deployment names template %q, want %q", got, name)
	}
	if diff := cmp.Diff(first.Spec, apply("2", metav1.DryRunAll).Spec); diff != "" {
		t.Errorf("kubectl diff shows (-stored +asked for):\n%s", diff)
	}
	apply("4")
	if got := newest(); got == "" || got == name {
		t.Errorf("the pod with more CPUs names template %q", got)
	}
	apply("2")
	if got := newest(); got != name {
		t.Errorf("the pod after the rollback names template %q, want %q", got, name)
	}
	if err := admin.AppsV1().Deployments(namespace).Delete(t.Context(), "rolls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pods of the Deployment are gone", func() bool {
		list, err := admin.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=rolls"})
		return err == nil && len(list.Items) == 0
	})
}

// A real API server asks about the pods that are labelled, and stores what the webhook says.
// Pods of workloads get the same template. Its claim is generated when it is made, which
// enforce lets pass.
func TestUnchangedPodsGetClaims(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	how := &webhook.Translation{Options: translate.Options{
		Scope: translate.ScopeContainer, Policy: translate.PolicyBestEffort, PartOfCore: translate.PartOfCoreLeave, ThreadsPerCore: 1,
	}}
	startWebhookThat(t, admin, 1, "enforce", how)
	refused(t, admin)
	namespace := labelled(t, admin, translate.LabelOn)
	pods := admin.CoreV1().Pods(namespace)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var tried *corev1.Pod
	eventually(t, "the webhook is trusted", func() (trusted bool) {
		var err error
		tried, err = pods.Create(t.Context(), podOf(t, "generateName: dry-"), dryRun)
		return err == nil && translate.TemplateOf(tried) != ""
	})

	pod := mustCreate(t, pods, podOf(t, "generateName: own-"))
	name := translate.TemplateOf(pod)
	if name != translate.TemplateOf(tried) || pod.Annotations[translate.Annotation] != `{"app":["app"]}` || len(pod.Spec.Containers[0].Resources.Claims) != 1 {
		t.Errorf("stored as %+v, in a dry run as %+v", pod, tried)
	}
	if pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("the pod is %s", pod.Status.QOSClass)
	}
	if pod := mustCreate(t, pods, podOf(t, `name: out, labels: {dra.numa/translate: "false"}`)); len(pod.Spec.ResourceClaims) > 0 {
		t.Error("a pod is translated that does not want it")
	}
	other := admin.CoreV1().Pods("default")
	if pod := create(t, other, podOf(t, `name: elsewhere, labels: {dra.numa/translate: "true"}`)); len(pod.Spec.ResourceClaims) > 0 {
		t.Error("a pod is translated whose namespace does not let it")
	}
	permits := admin.CoreV1().Pods(labelled(t, admin, translate.LabelPods))
	if pod := mustCreate(t, permits, podOf(t, "name: silent")); len(pod.Spec.ResourceClaims) > 0 {
		t.Error("a pod is translated that does not ask for it")
	}
	if pod := mustCreate(t, permits, podOf(t, `name: asks, labels: {dra.numa/translate: "true"}`)); translate.TemplateOf(pod) != name {
		t.Errorf("a pod that asks for it has the claims %v", pod.Spec.ResourceClaims)
	}

	checkInjected(t, admin, namespace, name, how.Options)

	const template = "{metadata: {labels: {app: a}}, spec: " + unchanged + "}"
	const workload = "{metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: " + template + "}}"
	mustCreate(t, admin.AppsV1().Deployments(namespace), object.Parse[appsv1.Deployment](t, workload))
	mustCreate(t, admin.AppsV1().StatefulSets(namespace), object.Parse[appsv1.StatefulSet](t, strings.Replace(workload, "app: a", "app: b", 2)))
	mustCreate(t, admin.BatchV1().Jobs(namespace), object.Parse[batchv1.Job](t, strings.Replace("{metadata: {name: a}, spec: {template: "+template+"}}", "{terminationG", "{restartPolicy: Never, terminationG", 1)))
	eventually(t, "each workload has a pod with the template", func() bool {
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var owners []string
		for _, pod := range list.Items {
			if owner := metav1.GetControllerOf(&pod); owner != nil && translate.TemplateOf(&pod) == name {
				owners = append(owners, owner.Kind)
			}
		}
		slices.Sort(owners)
		return slices.Equal(owners, []string{"Job", "ReplicaSet", "StatefulSet"})
	})

	checkRollouts(t, admin, namespace, name)

	stored, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, spec, err := translate.Again(stored, how.Options)
	if err != nil {
		t.Fatal(err)
	}
	made := &resourceapi.ResourceClaimTemplate{Spec: resourceapi.ResourceClaimTemplateSpec{Spec: spec}}
	made.Name = name
	begin := time.Now()
	made = mustCreate(t, admin.ResourceV1().ResourceClaimTemplates(namespace), made)
	if diff := cmp.Diff(spec, made.Spec.Spec); diff != "" {
		t.Errorf("the API server stores the template (-name is made of +stored):\n%s", diff)
	}
	eventually(t, "each pod has its claim", func() bool {
		claims, err := admin.ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(claims.Items) == 4
	})
	t.Logf("the pods have their claims %s after their template", time.Since(begin).Round(time.Millisecond))
}
