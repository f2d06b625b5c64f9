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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/templates"
)

const (
	webhookName = "dra-driver-numa-webhook"
	renewerName = "dra-driver-numa-webhook-renewer"
	// templatesName is the name of what makes the templates of translated pods.
	templatesName = "dra-driver-numa-templates"
)

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
			set:   []string{"webhook.enabled=true", "webhook.certificate.secret=mine"},
			has:   []string{"secretName: mine\n"},
			lacks: []string{"kind: Secret\n", "-renewer", "caBundle"},
		},
		{
			set: []string{"webhook.enabled=true", "webhook.mirrorRequests=enforce"},
			has: []string{"kind: MutatingWebhookConfiguration", "--mutating-configuration", "--enforce", "pods/resize"},
		},
		{
			set:   []string{"webhook.enabled=true", "webhook.translate.enabled=true"},
			has:   []string{"kind: MutatingWebhookConfiguration", "--mutating-configuration", "- --translate\n"},
			lacks: []string{"path: /mutate", "--translate-twins"},
		},
		{set: []string{"webhook.enabled=true", "webhook.mirrorRequests=true"}, lacks: []string{"--translate", "path: /translate"}},
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

// rights are what the roles with the name permit, by resource.
func rights(t *testing.T, rendered, name string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, document := range documents(rendered) {
		role := decode[rbacv1.ClusterRole](t, document)
		if !strings.HasSuffix(role.Kind, "Role") || role.Name != name {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				got[rule.APIGroups[0]+"/"+resource] += strings.Join(append(rule.Verbs, rule.ResourceNames...), " ")
			}
		}
	}
	return got
}

// TestWebhookRolesPermitOnlyWhatIsUsed: packages webhook and webhook/certificate call each,
// with the features that are on. The webhook, which reads what tenants write, changes
// nothing, and reads no Secret.
func TestWebhookRolesPermitOnlyWhatIsUsed(t *testing.T) {
	const mutating, used = "admissionregistration.k8s.io/mutatingwebhookconfigurations", "get list watch update " + webhookName
	for name, tc := range map[string]struct {
		set           []string
		more, renewer map[string]string
	}{
		"warnings":          {nil, nil, nil},
		"requests, too":     {[]string{"webhook.mirrorRequests=true"}, nil, map[string]string{mutating: used}},
		"translation":       {[]string{"webhook.translate.enabled=true"}, nil, map[string]string{mutating: used}},
		"enforced requests": {[]string{"webhook.mirrorRequests=enforce"}, map[string]string{"/pods": "list"}, map[string]string{mutating: used}},
	} {
		rendered := mustRender(t, append(tc.set, "webhook.enabled=true")...)
		want := map[string]string{
			"resource.k8s.io/deviceclasses":          "get list watch",
			"resource.k8s.io/resourceclaimtemplates": "get list watch",
			"resource.k8s.io/resourceclaims":         "get",
			"resource.k8s.io/resourceslices":         "list watch",
		}
		maps.Copy(want, tc.more)
		if diff := cmp.Diff(want, rights(t, rendered, webhookName)); diff != "" {
			t.Errorf("permissions with %s (-used +granted):\n%s", name, diff)
		}
		want = map[string]string{"admissionregistration.k8s.io/validatingwebhookconfigurations": used, "/secrets": used}
		maps.Copy(want, tc.renewer)
		if diff := cmp.Diff(want, rights(t, rendered, renewerName)); diff != "" {
			t.Errorf("permissions of the renewer with %s (-used +granted):\n%s", name, diff)
		}
	}
}

// TestRoleOfTemplatesPermitsOnlyWhatIsUsed: package webhook/templates calls each. Which
// templates, the policy says.
func TestRoleOfTemplatesPermitsOnlyWhatIsUsed(t *testing.T) {
	rendered := mustRender(t, "webhook.enabled=true", "webhook.translate.enabled=true")
	want := map[string]string{
		"resource.k8s.io/resourceclaimtemplates": "list watch create delete",
		"resource.k8s.io/deviceclasses":          "list watch",
		"/pods":                                  "list watch",
		"events.k8s.io/events":                   "create",
		"coordination.k8s.io/leases":             "get update " + templatesName,
	}
	if diff := cmp.Diff(want, rights(t, rendered, templatesName)); diff != "" {
		t.Errorf("permissions (-used +granted):\n%s", diff)
	}
	policy := named[admissionregistration.ValidatingAdmissionPolicy](t, rendered, "ValidatingAdmissionPolicy", templatesName).Spec
	text := policy.MatchConditions[0].Expression
	for _, validation := range policy.Validations {
		text += "\n" + validation.Expression
	}
	for _, word := range []string{"system:serviceaccount:dra-numa:" + templatesName, templates.Label, translate.Label, translate.LabelOn, translate.LabelPods, `"^numa-[0-9a-f]{32}$"`} {
		if !strings.Contains(text, `"`+strings.Trim(word, `"`)+`"`) {
			t.Errorf("the policy lacks %q:\n%s", word, text)
		}
	}
}

// What makes templates translates as the webhook does, or it would make none.
func TestTemplatesAreThoseOfTheWebhook(t *testing.T) {
	rendered, stderr, err := template(t, "--values", "testdata/every.values.yaml")
	if err != nil {
		t.Fatal(stderr)
	}
	flags := func(name, prefix string) (flags []string) {
		for _, arg := range named[appsv1.Deployment](t, rendered, "Deployment", name).Spec.Template.Spec.Containers[0].Args {
			if flag, is := strings.CutPrefix(arg, prefix); is {
				flags = append(flags, flag)
			}
		}
		return slices.DeleteFunc(flags, func(flag string) bool {
			name, _, _ := strings.Cut(flag, "=")
			return !slices.Contains([]string{"scope", "policy", "part-of-core", "threads-per-core", "cpu-limit", "twins"}, name)
		})
	}
	want, got := flags("my-numa-webhook", "--translate-"), flags("my-numa-templates", "--")
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 6 {
		t.Errorf("flags (-webhook +templates):\n%s", diff)
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
		"webhook.mirrorRequests=true":                          {"ClusterRole " + driver},
		"webhook.enabled=true":                                 {"ClusterRole " + driver, "ClusterRole " + webhookName, "ClusterRole " + renewerName, "Role " + renewerName},
		"webhook.enabled=true webhook.certificate.secret=mine": {"ClusterRole " + driver, "ClusterRole " + webhookName},
		"webhook.enabled=true webhook.certificate.secret=mine webhook.translate.enabled=true": {
			"ClusterRole " + driver, "ClusterRole " + templatesName, "ClusterRole " + webhookName, "Role " + templatesName,
		},
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

// TestWebhookHasNoRightsOnItsNode: webhook, renewer and what makes templates are programs that
// talk to the API server. Only the webhook has the pair that the renewer makes.
func TestWebhookHasNoRightsOnItsNode(t *testing.T) {
	for name, volumes := range map[string][]corev1.Volume{
		webhookName: {{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: webhookName, Items: []corev1.KeyToPath{{Key: "tls.crt", Path: "tls.crt"}, {Key: "tls.key", Path: "tls.key"}},
		}}}},
		renewerName:   nil,
		templatesName: nil,
	} {
		pod := named[appsv1.Deployment](t, mustRender(t, "webhook.enabled=true", "webhook.translate.enabled=true"), "Deployment", name).Spec.Template.Spec
		yes, no := true, false
		want := &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		if diff := cmp.Diff(want, pod.Containers[0].SecurityContext); diff != "" {
			t.Errorf("security context of %s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(volumes, pod.Volumes); diff != "" {
			t.Errorf("volumes of %s (-want +got):\n%s", name, diff)
		}
		if pod.HostNetwork || pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot {
			t.Errorf("%s: host network %t, security context %+v", name, pod.HostNetwork, pod.SecurityContext)
		}
		if pod.ServiceAccountName != name {
			t.Errorf("%s has the account %s", name, pod.ServiceAccountName)
		}
	}
}

// A certificate from elsewhere needs no renewer, but somebody has to say whom to trust.
func TestCertificateCanComeFromElsewhere(t *testing.T) {
	const secret, injected = "webhook.certificate.secret=mine", `webhook.certificate.annotations.cert-manager\.io/inject-ca-from=dra-numa/mine`
	const bundle = "webhook.certificate.caBundle=-----BEGIN CERTIFICATE-----\nx\n"
	configurations := func(rendered string) (metadata []metav1.ObjectMeta, clients []admissionregistration.WebhookClientConfig) {
		validating := named[admissionregistration.ValidatingWebhookConfiguration](t, rendered, "ValidatingWebhookConfiguration", webhookName)
		mutating := named[admissionregistration.MutatingWebhookConfiguration](t, rendered, "MutatingWebhookConfiguration", webhookName)
		for _, entry := range validating.Webhooks {
			clients = append(clients, entry.ClientConfig)
		}
		for _, entry := range mutating.Webhooks {
			clients = append(clients, entry.ClientConfig)
		}
		return []metav1.ObjectMeta{validating.ObjectMeta, mutating.ObjectMeta}, clients
	}
	on := []string{"webhook.enabled=true", "webhook.mirrorRequests=true", "commonAnnotations.owner=us"}
	metadata, clients := configurations(mustRender(t, append(on, secret, injected)...))
	for _, meta := range metadata {
		if want := map[string]string{"owner": "us", "cert-manager.io/inject-ca-from": "dra-numa/mine"}; !maps.Equal(meta.Annotations, want) {
			t.Errorf("annotations %q", meta.Annotations)
		}
	}
	for _, client := range clients {
		if client.CABundle != nil || client.Service == nil {
			t.Errorf("%+v", client)
		}
	}
	_, clients = configurations(mustRender(t, append(on, secret, bundle)...))
	for _, client := range clients {
		if string(client.CABundle) != "-----BEGIN CERTIFICATE-----\nx\n" || client.Service == nil {
			t.Errorf("%+v", client)
		}
	}
	for _, set := range []string{injected, bundle} {
		if _, stderr, err := render(t, append(on, set)...); err == nil || !strings.Contains(stderr, "caBundle and annotations need webhook.certificate.secret") {
			t.Errorf("%s without a Secret: %v, %s", set, err, stderr)
		}
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
// the webhook, unless it enforces requests or translates.
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
		"webhook.translate.enabled=true,webhook.failurePolicy=Ignore": {
			"parameters": "Ignore", "claims": "Ignore", "pods": "Ignore", "enforce": "Ignore", "translate": "Fail", "translate-pods": "Fail",
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

// Whatever is set, the command of the runbook leaves nothing that is refused.
func TestRunbookLetsRequestsPass(t *testing.T) {
	set := []string{"webhook.enabled=true", "webhook.failurePolicy=Fail", "webhook.mirrorRequests=enforce", "webhook.translate.enabled=true"}
	_, command, _ := strings.Cut(files.Read(t, "../../docs/runbooks.md"), "--set webhook.failurePolicy=")
	command, _, _ = strings.Cut(command, "\n")
	rendered := mustRender(t, append(set, strings.Split("webhook.failurePolicy="+command, " --set ")...)...)
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} { // the second has all fields of the first
		for _, entry := range named[admissionregistration.MutatingWebhookConfiguration](t, rendered, kind, webhookName).Webhooks {
			if *entry.FailurePolicy != admissionregistration.Ignore {
				t.Errorf("%s of a %s has the failure policy %s", entry.Name, kind, *entry.FailurePolicy)
			}
		}
	}
}

// Only pods whose namespace or label asks for a translation are translated, and only these
// depend on the webhook.
func TestOnlyPodsThatAskAreTranslated(t *testing.T) {
	rendered := mustRender(t, "webhook.enabled=true", "webhook.translate.enabled=true", "namespaceOverride=numa")
	entries := named[admissionregistration.MutatingWebhookConfiguration](t, rendered, "MutatingWebhookConfiguration", webhookName).Webhooks
	if len(entries) != 2 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, row := range []struct {
		namespace, pod map[string]string
		want           int // how many entries ask
	}{
		{nil, nil, 0},
		{nil, map[string]string{translate.Label: translate.LabelOff}, 0},
		{nil, map[string]string{translate.Label: translate.LabelOn}, 0},
		{map[string]string{translate.Label: translate.LabelPods}, nil, 0},
		{map[string]string{translate.Label: translate.LabelPods}, map[string]string{translate.Label: translate.LabelOff}, 0},
		{map[string]string{translate.Label: translate.LabelPods}, map[string]string{translate.Label: translate.LabelOn}, 1},
		{map[string]string{translate.Label: translate.LabelOff}, nil, 0},
		{map[string]string{translate.Label: translate.LabelOff}, map[string]string{translate.Label: translate.LabelOn}, 0},
		{map[string]string{translate.Label: translate.LabelOn}, nil, 1},
		{map[string]string{translate.Label: translate.LabelOn}, map[string]string{translate.Label: translate.LabelOn}, 1},
		{map[string]string{translate.Label: translate.LabelOn}, map[string]string{translate.Label: translate.LabelOff}, 0},
		{map[string]string{translate.Label: translate.LabelOn, corev1.LabelMetadataName: "numa"}, nil, 0},
	} {
		asks := 0
		for _, entry := range entries {
			if matches(t, entry.NamespaceSelector, row.namespace) && matches(t, entry.ObjectSelector, row.pod) {
				asks++
			}
		}
		if asks != row.want {
			t.Errorf("namespace %v, pod %v: %d entries ask, want %d", row.namespace, row.pod, asks, row.want)
		}
	}
	for _, entry := range entries {
		checkTimeout(t, entry.Name, *entry.TimeoutSeconds)
		if *entry.FailurePolicy != admissionregistration.Fail || *entry.SideEffects != admissionregistration.SideEffectClassNone ||
			*entry.ReinvocationPolicy != admissionregistration.IfNeededReinvocationPolicy || *entry.ClientConfig.Service.Path != "/translate" {
			t.Errorf("%+v", entry)
		}
	}
	const want = "webhook.translate.enabled=true needs webhook.enabled=true"
	if _, stderr, err := render(t, "webhook.translate.enabled=true"); err == nil || !strings.Contains(stderr, want) {
		t.Errorf("%v, %s", err, stderr)
	}
}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(set))
}

// The webhook's flags take what the values allow.
func TestTranslationIsThatOfTheValues(t *testing.T) {
	rendered, stderr, err := template(t, "--values", "testdata/every.values.yaml")
	if err != nil {
		t.Fatal(stderr)
	}
	for _, document := range documents(rendered) {
		deployment := decode[appsv1.Deployment](t, document)
		if deployment.Kind != "Deployment" || !slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--translate") {
			continue
		}
		args := deployment.Spec.Template.Spec.Containers[0].Args
		first := slices.Index(args, "--translate")
		want := []string{
			"--translate", "--translate-scope=pod", "--translate-policy=best-effort", "--translate-part-of-core=leave", "--translate-threads-per-core=1", "--translate-cpu-limit=lift",
			"--translate-twins=vendor.com/gpu=gpu.vendor.com,vendor.com/nic=nic.dra.numa", "--translate-on-error=leave",
		}
		if diff := cmp.Diff(want, args[first:first+len(want)]); diff != "" {
			t.Errorf("arguments (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("no Deployment translates")
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
	set := []string{"webhook.enabled=true", "webhook.translate.enabled=true", "webhook.networkPolicy.enabled=true"}
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
		policy := named[networking.NetworkPolicy](t, rendered, "NetworkPolicy", webhookName)
		tc.want.PodSelector.MatchLabels = named[appsv1.Deployment](t, rendered, "Deployment", webhookName).Spec.Selector.MatchLabels
		if diff := cmp.Diff(tc.want, policy.Spec); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		tc.want.Ingress = nil
		for _, other := range []string{renewerName, templatesName} {
			policy := named[networking.NetworkPolicy](t, rendered, "NetworkPolicy", other)
			tc.want.PodSelector.MatchLabels = named[appsv1.Deployment](t, rendered, "Deployment", other).Spec.Selector.MatchLabels
			if diff := cmp.Diff(tc.want, policy.Spec); diff != "" {
				t.Errorf("of %s, %s (-want +got):\n%s", other, name, diff)
			}
		}
	}
}
