package apiserver

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const (
	claimOfTwo = `
metadata: {name: shared}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}
`
	templateOfTwo = `
metadata: {name: two}
spec: {spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}}
`
	deniedBy = `admission webhook "enforce.webhook.dra.numa" denied the request: `
)

// tenant is a namespace whose pods may request 5 CPUs. Nothing in it is ever scheduled:
// there is no node.
func tenant(t *testing.T, admin kubernetes.Interface) string {
	t.Helper()
	namespace := create(t, admin.CoreV1().Namespaces(), object.Parse[corev1.Namespace](t, "metadata: {generateName: tenant-}")).Name
	quotas := admin.CoreV1().ResourceQuotas(namespace)
	mustCreate(t, quotas, object.Parse[corev1.ResourceQuota](t, `{metadata: {name: cpus}, spec: {hard: {requests.cpu: 5}}}`))
	eventually(t, "the quota is counted", func() bool {
		quota, err := quotas.Get(t.Context(), "cpus", metav1.GetOptions{})
		return err == nil && len(quota.Status.Used) > 0
	})
	eventually(t, "pods can be created", func() bool {
		_, err := admin.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return namespace
}

// mustCreate makes an object that lasts as long as its namespace.
func mustCreate[T metav1.Object](t *testing.T, client creator[T], object T) T {
	t.Helper()
	made, err := client.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// mustRefuse checks the end of an error.
func mustRefuse(t *testing.T, what, want string, err error) {
	t.Helper()
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%s: %v, want a refusal with %q", what, err, want)
	}
}

// podThat is a pod that has a claim, which no container uses: Kubernetes 1.36 does not
// resize containers that use claims.
func podThat(t *testing.T, name, claim string) *corev1.Pod {
	t.Helper()
	return object.Parse[corev1.Pod](t, `
metadata: {name: `+name+`}
spec:
  resourceClaims: [{name: c, `+claim+`}]
  containers: [{name: main, image: none}]
`)
}

func larger(text string) string { return strings.Replace(text, "cpu: 2", "cpu: 64", 1) }

// TestEnforcedClaimsAreBoundByQuota does what a tenant may do who wants more CPUs than
// the quota allows. The controllers are real ones.
func TestEnforcedClaimsAreBoundByQuota(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	startWebhook(t, admin, 1, "enforce")
	refused(t, admin)
	namespace := tenant(t, admin)
	pods, claims := admin.CoreV1().Pods(namespace), admin.ResourceV1().ResourceClaims(namespace)

	attack(t, admin, namespace)

	const unknown = deniedBy + "spec.resourceClaims[0]: what the claim may hold is not known: there is no claim "
	_, err := pods.Create(t.Context(), podThat(t, "early", "resourceClaimName: shared"), metav1.CreateOptions{})
	mustRefuse(t, "create a pod before its claim", unknown+`"shared"`, err)
	_, err = pods.Create(t.Context(), podThat(t, "early", "resourceClaimTemplateName: two"), metav1.CreateOptions{})
	mustRefuse(t, "create a pod before its template", unknown+`template "two"`, err)

	// Each pod counts all of a shared claim: 2 of 5 CPUs, 4 of 5, 6 of 5.
	mustCreate(t, claims, object.Parse[resourceapi.ResourceClaim](t, claimOfTwo))
	for _, name := range []string{"first", "second"} {
		pod := mustCreate(t, pods, podThat(t, name, "resourceClaimName: shared"))
		if cpu := pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU]; cpu.Value() != 2 {
			t.Errorf("pod %s requests %s CPUs, want 2", name, cpu.String())
		}
	}
	_, err = pods.Create(t.Context(), podThat(t, "third", "resourceClaimName: shared"), metav1.CreateOptions{})
	mustRefuse(t, "create a third pod", "exceeded quota: cpus, requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=5", err)

	pod, err := pods.Get(t.Context(), "first", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.ResourceVersion = "" // the scheduler writes its status meanwhile
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	_, err = pods.UpdateResize(t.Context(), "first", pod, metav1.UpdateOptions{})
	mustRefuse(t, "resize a pod", deniedBy+"spec.containers: the requests lack cpu 1, which the pod's claims may hold", err)

	if err := claims.Delete(t.Context(), "shared", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = claims.Create(t.Context(), object.Parse[resourceapi.ResourceClaim](t, larger(claimOfTwo)), metav1.CreateOptions{})
	mustRefuse(t, "replace the claim by a larger one", "the requests lack cpu 62, which the pod's claims may hold", err)

	for _, name := range []string{"first", "second"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mustCreate(t, claims, object.Parse[resourceapi.ResourceClaim](t, larger(claimOfTwo)))
	replaceGenerated(t, admin, namespace)
}

// replaceGenerated wants a larger claim in the place of a generated one.
func replaceGenerated(t *testing.T, admin kubernetes.Interface, namespace string) {
	t.Helper()
	pods, claims := admin.CoreV1().Pods(namespace), admin.ResourceV1().ResourceClaims(namespace)
	mustCreate(t, admin.ResourceV1().ResourceClaimTemplates(namespace), object.Parse[resourceapi.ResourceClaimTemplate](t, templateOfTwo))
	eventually(t, "the quota counts the deleted pods no longer", func() bool {
		_, err := pods.Create(t.Context(), podThat(t, "generates", "resourceClaimTemplateName: two"), metav1.CreateOptions{})
		return err == nil
	})
	nameOf := func() string {
		pod, err := pods.Get(t.Context(), "generates", metav1.GetOptions{})
		if err != nil || len(pod.Status.ResourceClaimStatuses) == 0 {
			return ""
		}
		return *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
	}
	// Kubernetes may generate another claim as soon as one is gone: then the pod waits for
	// that one, and what is asked here says nothing.
	for range 10 {
		var generated *resourceapi.ResourceClaim
		eventually(t, "a claim is generated", func() bool {
			var err error
			generated, err = claims.Get(t.Context(), nameOf(), metav1.GetOptions{})
			return err == nil
		})
		if err := claims.Delete(t.Context(), generated.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		larger, asLarge := generateAgain(t, namespace, generated), forge(t, claims, generated)
		if nameOf() == generated.Name {
			const lacks = "the requests lack cpu 62, which the pod's claims may hold"
			mustRefuse(t, "generate a larger claim", lacks, larger)
			mustRefuse(t, "give a claim to a pod", lacks, asLarge)
			return
		}
	}
	t.Error("Kubernetes generates another claim each time")
}

// generateAgain generates a claim as it was, and a larger one, because a template was replaced
// by a larger one before Kubernetes generated the claim. It returns the answer to that.
func generateAgain(t *testing.T, namespace string, generated *resourceapi.ResourceClaim) error {
	t.Helper()
	controller := asUser(t, rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:resource-claim-controller", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	})
	var errs []error
	for _, text := range []string{claimOfTwo, larger(claimOfTwo)} {
		claim := object.Parse[resourceapi.ResourceClaim](t, text)
		claim.ObjectMeta = metav1.ObjectMeta{GenerateName: generated.GenerateName, Annotations: generated.Annotations, OwnerReferences: generated.OwnerReferences}
		_, err := controller.ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		errs = append(errs, err)
	}
	if errs[0] != nil {
		t.Errorf("generate a claim: %v", errs[0])
	}
	return errs[1]
}

// forge puts a larger claim in the place of a generated one, as a tenant may, and returns the
// answer to the last step: that the pod owns it.
func forge(t *testing.T, claims resourceclient.ResourceClaimInterface, generated *resourceapi.ResourceClaim) error {
	t.Helper()
	forged := object.Parse[resourceapi.ResourceClaim](t, larger(claimOfTwo))
	forged.Name = generated.Name
	mustCreate(t, claims, forged)
	forged, err := claims.Get(t.Context(), generated.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	forged.Labels = map[string]string{"any": "label"}
	if forged, err = claims.Update(t.Context(), forged, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	forged.OwnerReferences = generated.OwnerReferences
	_, err = claims.Update(t.Context(), forged, metav1.UpdateOptions{})
	return err
}
