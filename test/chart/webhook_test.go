package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

const webhookName = "dra-driver-numa-webhook"

// named returns the object of a kind and name in a rendered chart, decoded as object does.
func named[T any](t *testing.T, rendered, kind, name string) (value T) {
	t.Helper()
	for _, document := range documents(rendered) {
		object := decode[struct {
			Kind     string
			Metadata struct{ Name string }
		}](t, document)
		if object.Kind == kind && object.Metadata.Name == name {
			if err := yaml.UnmarshalStrict([]byte(document), &value); err != nil {
				t.Fatalf("decode %s %s: %v", kind, name, err)
			}
			return value
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
		{
			set:   []string{"webhook.enabled=true", "webhook.mirrorRequests=true"},
			lacks: []string{"--enforce"},
		},
		{
			set: []string{"webhook.enabled=true", "webhook.mirrorRequests=enforce"},
			has: []string{"kind: MutatingWebhookConfiguration", "--mutating-configuration", "--enforce", "pods/resize"},
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

// TestWebhookRolesPermitOnlyWhatIsUsed: package webhook calls each, with the features
// that are on.
func TestWebhookRolesPermitOnlyWhatIsUsed(t *testing.T) {
	const mutating = "admissionregistration.k8s.io/mutatingwebhookconfigurations"
	for name, tc := range map[string]struct {
		set  []string
		more map[string]string
	}{
		"warnings":      {nil, nil},
		"requests, too": {[]string{"webhook.mirrorRequests=true"}, map[string]string{mutating: "get update " + webhookName}},
		"enforced requests": {
			[]string{"webhook.mirrorRequests=enforce"}, map[string]string{mutating: "get update " + webhookName, "/pods": "list"},
		},
	} {
		rendered := mustRender(t, append(tc.set, "webhook.enabled=true")...)
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
			"/secrets": "get update " + webhookName,
		}
		maps.Copy(want, tc.more)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("permissions with %s (-used +granted):\n%s", name, diff)
		}
	}
}

// TestFeaturesThatAreOffHaveNoRights: every role of the chart belongs to a feature. Those of
// hooks exist only while their hook runs.
func TestFeaturesThatAreOffHaveNoRights(t *testing.T) {
	const driver, viewer = "dra-driver-numa", "dra-driver-numa-viewer"
	for set, want := range map[string][]string{
		"":                               {"ClusterRole " + driver},
		"nvml.enabled=true nvml.image=x": {"ClusterRole " + driver},
		"viewer.enabled=true":            {"ClusterRole " + driver, "ClusterRole " + viewer, "Role " + viewer},
		// Without the webhook, its settings give no rights.
		"webhook.mirrorRequests=true": {"ClusterRole " + driver},
		"webhook.enabled=true":        {"ClusterRole " + driver, "ClusterRole " + webhookName, "Role " + webhookName},
	} {
		var got []string
		for _, document := range documents(mustRender(t, strings.Fields(set)...)) {
			if role := decode[rbacv1.ClusterRole](t, document); strings.HasSuffix(role.Kind, "Role") && role.Annotations["helm.sh/hook"] == "" {
				got = append(got, role.Kind+" "+role.Name)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("roles with %q (-want +got):\n%s", set, diff)
		}
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

// Without the webhook, enforce would promise something that nobody does.
func TestEnforceNeedsTheWebhook(t *testing.T) {
	const want = "webhook.mirrorRequests=enforce needs webhook.enabled=true"
	if _, stderr, err := render(t, "webhook.mirrorRequests=enforce"); err == nil || !strings.Contains(stderr, want) {
		t.Errorf("%v, %s", err, stderr)
	}
}

// The entry that enforces is there, and trusted, before it refuses anything: what is added
// when it begins to refuse would refuse everything until somebody fills in whom to trust.
func TestEntryOfEnforceIsThereBefore(t *testing.T) {
	entry := func(set string) admissionregistration.ValidatingWebhook {
		config := named[admissionregistration.ValidatingWebhookConfiguration](t, mustRender(t, "webhook.enabled=true", set), "ValidatingWebhookConfiguration", webhookName)
		index := slices.IndexFunc(config.Webhooks, func(entry admissionregistration.ValidatingWebhook) bool {
			return entry.Name == "enforce.webhook.dra.numa"
		})
		if index < 0 {
			t.Fatalf("with %s there is no entry", set)
		}
		return config.Webhooks[index]
	}
	enforced := entry("webhook.mirrorRequests=enforce")
	if len(enforced.MatchConditions) != 2 {
		t.Errorf("conditions %+v", enforced.MatchConditions)
	}
	for _, set := range []string{"webhook.mirrorRequests=true", "webhook.mirrorRequests=false"} {
		before := entry(set)
		if len(before.MatchConditions) != 1 || before.MatchConditions[0].Expression != "false" || *before.FailurePolicy != admissionregistration.Ignore {
			t.Errorf("with %s: conditions %+v, %s", set, before.MatchConditions, *before.FailurePolicy)
		}
		before.MatchConditions, before.FailurePolicy = enforced.MatchConditions, enforced.FailurePolicy
		if diff := cmp.Diff(enforced, before); diff != "" {
			t.Errorf("entry that is enforced, and with %s:\n%s", set, diff)
		}
	}
}

// TestOnlyWhatRefusesFailsClosed: neither pods nor the objects of other drivers depend on
// the webhook, unless it enforces requests.
func TestOnlyWhatRefusesFailsClosed(t *testing.T) {
	for set, want := range map[string]map[string]string{
		"webhook.mirrorRequests=true,webhook.failurePolicy=Ignore": {
			"parameters": "Ignore", "claims": "Ignore", "pods": "Ignore", "requests": "Ignore", "enforce": "Ignore",
		},
		"webhook.mirrorRequests=true,webhook.failurePolicy=Fail": {
			"parameters": "Fail", "claims": "Ignore", "pods": "Ignore", "requests": "Ignore", "enforce": "Ignore",
		},
		"webhook.mirrorRequests=enforce,webhook.failurePolicy=Ignore": {
			"parameters": "Ignore", "claims": "Ignore", "pods": "Ignore", "requests": "Ignore", "enforce": "Fail",
		},
	} {
		rendered := mustRender(t, "webhook.enabled=true", set)
		got := map[string]string{}
		for _, entry := range named[admissionregistration.ValidatingWebhookConfiguration](t, rendered, "ValidatingWebhookConfiguration", webhookName).Webhooks {
			got[strings.TrimSuffix(entry.Name, ".webhook.dra.numa")] = string(*entry.FailurePolicy)
			checkTimeout(t, entry.Name, *entry.TimeoutSeconds)
		}
		for _, entry := range named[admissionregistration.MutatingWebhookConfiguration](t, rendered, "MutatingWebhookConfiguration", webhookName).Webhooks {
			got[strings.TrimSuffix(entry.Name, ".webhook.dra.numa")] = string(*entry.FailurePolicy)
			checkTimeout(t, entry.Name, *entry.TimeoutSeconds)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("failure policies with %s (-want +got):\n%s", set, diff)
		}
	}
}

// checkTimeout checks that the API server waits until the webhook itself gives up.
func checkTimeout(t *testing.T, name string, seconds int32) {
	t.Helper()
	if limit := time.Duration(seconds) * time.Second; limit <= webhook.ReviewTimeout {
		t.Errorf("%s may take %s, and the webhook takes up to %s", name, limit, webhook.ReviewTimeout)
	}
}

// TestNetworkPolicyOpensOnePort of the pods of the webhook, and of no others.
func TestNetworkPolicyOpensOnePort(t *testing.T) {
	if rendered := mustRender(t, "webhook.enabled=true"); strings.Contains(rendered, "kind: NetworkPolicy") {
		t.Error("there is a NetworkPolicy by default")
	}
	set := []string{"webhook.enabled=true", "webhook.networkPolicy.enabled=true"}
	port := networking.NetworkPolicyPort{Port: new(intstr.FromString("webhook"))}
	peer := networking.NetworkPolicyPeer{IPBlock: &networking.IPBlock{CIDR: "10.0.0.1/32"}}
	for name, tc := range map[string]struct {
		set  []string
		want networking.NetworkPolicySpec
	}{
		"any peer": {nil, networking.NetworkPolicySpec{
			PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress},
			Ingress:     []networking.NetworkPolicyIngressRule{{Ports: []networking.NetworkPolicyPort{port}}},
		}},
		"API servers": {
			[]string{"webhook.networkPolicy.ingressFrom[0].ipBlock.cidr=10.0.0.1/32", "webhook.networkPolicy.egressTo[0].ipBlock.cidr=10.0.0.1/32"},
			networking.NetworkPolicySpec{
				PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress, networking.PolicyTypeEgress},
				Ingress: []networking.NetworkPolicyIngressRule{{
					Ports: []networking.NetworkPolicyPort{port}, From: []networking.NetworkPolicyPeer{peer},
				}},
				Egress: []networking.NetworkPolicyEgressRule{{To: []networking.NetworkPolicyPeer{peer}}},
			},
		},
	} {
		rendered := mustRender(t, append(tc.set, set...)...)
		policy := object[networking.NetworkPolicy](t, rendered, "NetworkPolicy")
		tc.want.PodSelector.MatchLabels = named[appsv1.Deployment](t, rendered, "Deployment", webhookName).Spec.Selector.MatchLabels
		if diff := cmp.Diff(tc.want, policy.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
