package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

const webhookName = "dra-driver-numa-webhook"

// named returns the object of a kind and name in a rendered chart.
func named[T any](t *testing.T, rendered, kind, name string) (value T) {
	t.Helper()
	for _, document := range documents(rendered) {
		object := decode[struct {
			Kind     string
			Metadata struct{ Name string }
		}](t, document)
		if object.Kind == kind && object.Metadata.Name == name {
			return decode[T](t, document)
		}
	}
	t.Fatalf("the chart has no %s %s", kind, name)
	return value
}

func TestWebhookIsOptional(t *testing.T) {
	for _, tc := range []struct {
		set        []string
		has, lacks []string
	}{
		{lacks: []string{"-webhook\n", "kind: Secret", "kind: MutatingWebhookConfiguration"}},
		{
			set:   []string{"webhook.enabled=true"},
			has:   []string{"kind: ValidatingWebhookConfiguration", "kind: Secret", "kind: PodDisruptionBudget"},
			lacks: []string{"kind: MutatingWebhookConfiguration", "--mutating-configuration"},
		},
		{
			set:   []string{"webhook.enabled=true", "webhook.mirrorRequests=true", "webhook.replicas=1"},
			has:   []string{"kind: MutatingWebhookConfiguration", "--mutating-configuration"},
			lacks: []string{"kind: PodDisruptionBudget"},
		},
		{set: []string{"ownSlicesOnly=false"}, lacks: []string{"ValidatingAdmissionPolicy"}},
	} {
		rendered := mustRender(t, tc.set...)
		for _, text := range tc.has {
			if !strings.Contains(rendered, text) {
				t.Errorf("with %q there is no %q", tc.set, text)
			}
		}
		for _, text := range tc.lacks {
			if strings.Contains(rendered, text) {
				t.Errorf("with %q there is %q", tc.set, text)
			}
		}
	}
}

// TestWebhookRolesPermitOnlyWhatIsUsed: package webhook calls each.
func TestWebhookRolesPermitOnlyWhatIsUsed(t *testing.T) {
	rendered := mustRender(t, "webhook.enabled=true")
	got := map[string]string{}
	rules := append(named[rbacv1.ClusterRole](t, rendered, "ClusterRole", webhookName).Rules, named[rbacv1.Role](t, rendered, "Role", webhookName).Rules...)
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			got[rule.APIGroups[0]+"/"+resource] += strings.Join(append(rule.Verbs, rule.ResourceNames...), " ")
		}
	}
	want := map[string]string{
		"resource.k8s.io/deviceclasses":                                "get list watch",
		"resource.k8s.io/resourceclaimtemplates":                       "get list watch",
		"resource.k8s.io/resourceclaims":                               "get",
		"resource.k8s.io/resourceslices":                               "list watch",
		"admissionregistration.k8s.io/validatingwebhookconfigurations": "get update " + webhookName,
		"admissionregistration.k8s.io/mutatingwebhookconfigurations":   "get update " + webhookName,
		"/secrets": "get update " + webhookName,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-used +granted):\n%s", diff)
	}
}

// TestWebhookHasNoRightsOnItsNode: it is a program that talks to the API server.
func TestWebhookHasNoRightsOnItsNode(t *testing.T) {
	pod := named[appsv1.Deployment](t, mustRender(t, "webhook.enabled=true"), "Deployment", webhookName).Spec.Template.Spec
	yes, no := true, false
	want := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, pod.Containers[0].SecurityContext); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	if len(pod.Volumes) > 0 || pod.HostNetwork || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("volumes %v, host network %t, security context %+v", pod.Volumes, pod.HostNetwork, pod.SecurityContext)
	}
}

// TestOnlyWhatRefusesFailsClosed: a pod's creation never waits for warnings.
func TestOnlyWhatRefusesFailsClosed(t *testing.T) {
	for set, want := range map[string]map[string]string{
		"webhook.failurePolicy=Ignore": {"parameters": "Ignore", "pods": "Ignore", "requests": "Ignore"},
		"webhook.failurePolicy=Fail":   {"parameters": "Fail", "pods": "Ignore", "requests": "Fail"},
	} {
		rendered := mustRender(t, "webhook.enabled=true", "webhook.mirrorRequests=true", set)
		got := map[string]string{}
		for _, webhook := range named[admissionregistration.ValidatingWebhookConfiguration](t, rendered, "ValidatingWebhookConfiguration", webhookName).Webhooks {
			got[strings.TrimSuffix(webhook.Name, ".webhook.dra.numa")] = string(*webhook.FailurePolicy)
		}
		for _, webhook := range named[admissionregistration.MutatingWebhookConfiguration](t, rendered, "MutatingWebhookConfiguration", webhookName).Webhooks {
			got[strings.TrimSuffix(webhook.Name, ".webhook.dra.numa")] = string(*webhook.FailurePolicy)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("failure policies with %s (-want +got):\n%s", set, diff)
		}
	}
}
