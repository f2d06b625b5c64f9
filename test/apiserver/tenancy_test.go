package apiserver

import (
	"strings"
	"testing"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const tenancyPage = "../../docs/multi-tenancy.md"

// ofPage returns the objects of a kind on docs/multi-tenancy.md.
func ofPage[T any](t *testing.T, kind string) (objects []*T) {
	t.Helper()
	for _, text := range files.YAML(t, tenancyPage) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Kind == kind {
			objects = append(objects, object.Parse[T](t, text))
		}
	}
	return objects
}

// TestRecipesOfThePage applies the manifests of the page that need no other program, and
// does what they forbid.
func TestRecipesOfThePage(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	create(t, admin.CoreV1().Namespaces(), object.Parse[corev1.Namespace](t, "metadata: {name: team-a}"))
	createAll(t, admin.CoreV1().Namespaces(), ofPage[corev1.Namespace](t, "Namespace"))
	createAll(t, admin.AdmissionregistrationV1().ValidatingAdmissionPolicies(), ofPage[admissionregistration.ValidatingAdmissionPolicy](t, "ValidatingAdmissionPolicy"))
	createAll(t, admin.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings(), ofPage[admissionregistration.ValidatingAdmissionPolicyBinding](t, "ValidatingAdmissionPolicyBinding"))
	for _, quota := range ofPage[corev1.ResourceQuota](t, "ResourceQuota") {
		mustCreate(t, admin.CoreV1().ResourceQuotas("team-a"), quota)
	}
	mustCreate(t, admin.CoreV1().LimitRanges("team-a"), ofPage[corev1.LimitRange](t, "LimitRange")[0])
	eventually(t, "the quotas are counted", func() bool {
		quotas, err := admin.CoreV1().ResourceQuotas("team-a").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(quotas.Items) == 2 && len(quotas.Items[0].Status.Used) > 0 && len(quotas.Items[1].Status.Used) > 0
	})

	const (
		tooLarge  = "a request may have 16 CPUs of one zone at most"
		labelled  = "only namespaces with the label numa.example.com/isolated=true may use the class isolated.dra.numa"
		noDevices = "exceeded quota: devices, requested: isolated.dra.numa.deviceclass.resource.k8s.io/devices=1, used: isolated.dra.numa.deviceclass.resource.k8s.io/devices=0, limited: isolated.dra.numa.deviceclass.resource.k8s.io/devices=0"
		noAdmin   = "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
		twoGPUs   = "exceeded quota: devices, requested: gpu.dra.numa.deviceclass.resource.k8s.io/devices=3, used: gpu.dra.numa.deviceclass.resource.k8s.io/devices=0, limited: gpu.dra.numa.deviceclass.resource.k8s.io/devices=2"
	)
	for want, request := range map[string]string{
		tooLarge: "exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 64}}}",
		labelled: "exactly: {deviceClassName: isolated.dra.numa}",
	} {
		eventually(t, "the policy refuses: "+want, func() bool { // it holds some time after it is made
			err := createTemplate(t, admin, "team-a", request)
			return err != nil && strings.HasSuffix(err.Error(), want)
		})
	}
	for name, row := range map[string]struct{ namespace, request, want string }{
		"16 CPUs":                       {"team-a", "exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 16, memory: 1Gi}}}", ""},
		"17 CPUs":                       {"team-a", "exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 17}}}", tooLarge},
		"16500 thousandths":             {"team-a", `exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: "16500m"}}}`, tooLarge},
		"17000 thousandths":             {"team-a", `exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: "17000m"}}}`, tooLarge},
		"17 CPUs, in the long spelling": {"team-a", "exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.numa/cpu: 17}}}", tooLarge},
		"16 CPUs, in the long spelling": {"team-a", "exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.numa/cpu: 16}}}", ""},
		"an alternative of 64":          {"team-a", "firstAvailable: [{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}, {name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 64}}}]", tooLarge},
		"only memory":                   {"team-a", "exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {memory: 64Gi}}}", ""},
		"no capacity":                   {"team-a", "exactly: {deviceClassName: gpu.dra.numa}", ""},
		"64 of another driver":          {"team-a", "exactly: {deviceClassName: gpu.example.com, capacity: {requests: {cpu: 64}}}", ""},
		"three GPUs":                    {"team-a", "exactly: {deviceClassName: gpu.dra.numa, count: 3}", twoGPUs},
		"isolated CPUs":                 {"team-a", "exactly: {deviceClassName: isolated.dra.numa, capacity: {requests: {cpu: 2}}}", labelled},
		"isolated CPUs, as alternative": {"team-a", "firstAvailable: [{name: a, deviceClassName: isolated.dra.numa}, {name: b, deviceClassName: zone.dra.numa}]", labelled},
		"isolated CPUs, with the label": {"team-b", "exactly: {deviceClassName: isolated.dra.numa, capacity: {requests: {cpu: 2}}}", ""},
		"admin access":                  {"team-a", "exactly: {deviceClassName: zone.dra.numa, adminAccess: true}", noAdmin},
		"admin access, with the label":  {"node-diagnostics", "exactly: {deviceClassName: zone.dra.numa, adminAccess: true}", ""},
	} {
		wants := map[string]string{"claim": row.want, "template": row.want}
		if strings.HasPrefix(row.want, "exceeded quota") {
			wants["template"] = ""
		}
		errs := map[string]error{"claim": createClaim(t, admin, row.namespace, row.request), "template": createTemplate(t, admin, row.namespace, row.request)}
		for kind, want := range wants {
			if want != "" {
				mustRefuse(t, name+" in a "+kind, want, errs[kind])
			} else if errs[kind] != nil {
				t.Errorf("%s in a %s: %v", name, kind, errs[kind])
			}
		}
	}

	// The quota also refuses the class where the policy allows it.
	namespace, err := admin.CoreV1().Namespaces().Get(t.Context(), "team-a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	namespace.Labels["numa.example.com/isolated"] = "true"
	if _, err := admin.CoreV1().Namespaces().Update(t.Context(), namespace, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, noDevices, func() bool {
		err := createClaim(t, admin, "team-a", "exactly: {deviceClassName: isolated.dra.numa}")
		return err != nil && strings.HasSuffix(err.Error(), noDevices)
	})
}

// createClaim creates a claim with a request, as if: nothing is kept.
func createClaim(t *testing.T, admin kubernetes.Interface, namespace, request string) error {
	t.Helper()
	claim := object.Parse[resourceapi.ResourceClaim](t, "{metadata: {name: tried}, spec: {devices: {requests: [{name: r, "+request+"}]}}}")
	_, err := admin.ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// createTemplate does the same with a template.
func createTemplate(t *testing.T, admin kubernetes.Interface, namespace, request string) error {
	t.Helper()
	template := object.Parse[resourceapi.ResourceClaimTemplate](t, "{metadata: {name: tried}, spec: {spec: {devices: {requests: [{name: r, "+request+"}]}}}}")
	_, err := admin.ResourceV1().ResourceClaimTemplates(namespace).Create(t.Context(), template, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
