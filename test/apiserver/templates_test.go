package apiserver

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/templates"
)

// templatesName is the name of what makes templates, and of its account.
const templatesName = "dra-driver-numa-templates"

// asIs is how the tests translate pods.
func asIs() translate.Options {
	return translate.Options{Scope: translate.ScopeContainer, Policy: translate.PolicySingleNUMANode, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: 2}
}

// translating is a namespace whose translated pods have templates made.
type translating struct {
	office
	namespace string
}

// openTranslating installs the chart, a node and the namespace. What makes templates does not
// run yet. The pods are translated here: the webhook is not asked about pods with claims.
func openTranslating(t *testing.T, node string) translating {
	t.Helper()
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t, "webhook.enabled=true", "webhook.translate.enabled=true")
	office := openOffice(t, admin, node)
	office.publish(false)
	return translating{office, labelled(t, admin, translate.LabelPods)}
}

// startTemplates runs what makes templates with the rights of its account, until stop is
// called or the test ends.
func (o translating) startTemplates() (stop func()) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(o.t.Context())
	ended := make(chan error, 1)
	options := templates.Options{Client: as(o.t, templatesName, nil), Namespace: "dra-numa", Lease: templatesName, Identity: o.t.Name(), Translate: asIs()}
	go func() { ended <- templates.Run(ctx, options) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			o.t.Errorf("templates: %v", err)
		}
	}
	o.t.Cleanup(stop)
	return stop
}

// translated creates a pod with two CPUs, translated.
func (o translating) translated(name string) (*corev1.Pod, translate.Translated) {
	o.t.Helper()
	pod := o.pod(name)
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: limits, Requests: limits.DeepCopy()}
	got, err := translate.Pod(pod, asIs())
	if err != nil {
		o.t.Fatal(err)
	}
	return mustCreate(o.t, o.admin.CoreV1().Pods(o.namespace), got.Pod), got
}

// mustMake waits for the template.
func (o translating) mustMake(got translate.Translated) *resourceapi.ResourceClaimTemplate {
	o.t.Helper()
	var template *resourceapi.ResourceClaimTemplate
	eventually(o.t, "the template is that of the translation", func() bool {
		var err error
		template, err = o.admin.ResourceV1().ResourceClaimTemplates(o.namespace).Get(o.t.Context(), got.Template, metav1.GetOptions{})
		return err == nil && cmp.Equal(resourceapi.ResourceClaimTemplateSpec{Spec: got.Spec}, template.Spec)
	})
	return template
}

// mustSchedule waits until the scheduler has bound the pod.
func (o translating) mustSchedule(pod *corev1.Pod) {
	o.t.Helper()
	eventually(o.t, "pod "+pod.Name+" is scheduled", func() bool {
		now, err := o.admin.CoreV1().Pods(o.namespace).Get(o.t.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && now.Spec.NodeName == o.node && len(now.Status.ResourceClaimStatuses) == 1
	})
}

// mustSay waits for an event on the pod that says all parts.
func (o translating) mustSay(pod *corev1.Pod, parts ...string) {
	o.t.Helper()
	eventually(o.t, "an event says "+strings.Join(parts, " and "), func() bool {
		events, err := o.admin.EventsV1().Events(o.namespace).List(o.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, event := range events.Items {
			says := event.Reason == templates.Reason && event.Regarding.UID == pod.UID
			for _, part := range parts {
				says = says && strings.Contains(event.Note, part)
			}
			if says {
				return true
			}
		}
		return false
	})
}

// own is a template of a tenant.
func own(t *testing.T, name, labels string) *resourceapi.ResourceClaimTemplate {
	t.Helper()
	return object.Parse[resourceapi.ResourceClaimTemplate](t, `
metadata: {name: `+name+`, labels: `+labels+`}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}}]}}}
`)
}

// TestTranslatedPodsAreScheduled: a real claim controller and a real scheduler do the rest.
func TestTranslatedPodsAreScheduled(t *testing.T) {
	o := openTranslating(t, "translating")
	stop := o.startTemplates()
	first, got := o.translated("first")
	template := o.mustMake(got)
	o.mustSchedule(first)
	second, _ := o.translated("second")
	o.mustSchedule(second)
	if now := o.mustMake(got); now.UID != template.UID {
		t.Error("the template is made twice")
	}

	// The other replica does not wait until the Lease ends.
	stop()
	lease, err := o.admin.CoordinationV1().Leases("dra-numa").Get(t.Context(), templatesName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
		t.Errorf("the Lease is not released: %+v, %v", lease, err)
	}
}

// TestAlteredTemplateOfATenant: specs of templates never change, so a tenant deletes one and
// makes another one.
func TestAlteredTemplateOfATenant(t *testing.T) {
	o := openTranslating(t, "altered")
	api := o.admin.ResourceV1().ResourceClaimTemplates(o.namespace)
	first, got := o.translated("first")
	mustCreate(t, api, own(t, got.Template, `{dra.numa/translated: "true"}`))
	stop := o.startTemplates()
	o.mustMake(got)
	o.mustSchedule(first)
	if err := api.Delete(t.Context(), got.Template, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.mustMake(got)

	stop()
	if err := api.Delete(t.Context(), got.Template, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	foreign := mustCreate(t, api, own(t, got.Template, "{}"))
	o.startTemplates()
	o.mustSay(first, "it exists with another spec, and somebody else has made it")
	now, err := api.Get(t.Context(), got.Template, metav1.GetOptions{})
	if err != nil || now.UID != foreign.UID {
		t.Errorf("the template of the tenant is gone: %v", err)
	}
	if err := api.Delete(t.Context(), got.Template, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.mustMake(got)
}

func TestQuotaOfTemplatesIsNamedOnThePod(t *testing.T) {
	o := openTranslating(t, "quota")
	quotas := o.admin.CoreV1().ResourceQuotas(o.namespace)
	mustCreate(t, quotas, object.Parse[corev1.ResourceQuota](t, `{metadata: {name: templates}, spec: {hard: {count/resourceclaimtemplates.resource.k8s.io: 0}}}`))
	eventually(t, "the quota is counted", func() bool {
		quota, err := quotas.Get(t.Context(), "templates", metav1.GetOptions{})
		return err == nil && len(quota.Status.Used) > 0
	})
	o.startTemplates()
	pod, _ := o.translated("pod")
	o.mustSay(pod, "the API server refuses it: ", "exceeded quota: templates")
	if err := quotas.Delete(t.Context(), "templates", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.mustSchedule(pod)
}

func TestExplainSaysWhoMakesTheTemplate(t *testing.T) {
	o := openTranslating(t, "nobody-makes")
	pod, got := o.translated("pod")
	explain := exec.CommandContext(t.Context(), buildCLI(t), "explain", "pod", pod.Name, "--namespace="+o.namespace, "--kubeconfig="+os.Getenv("APISERVER_KUBECONFIG"))
	output, _ := explain.CombinedOutput() // it says by its exit code that the pod does not fit
	want := `ResourceClaimTemplate "` + got.Template + `" does not exist in namespace ` + o.namespace + `, and the driver's Deployment whose name ends with -templates has not made it`
	if !strings.Contains(string(output), want) {
		t.Errorf("explain says\n%s\nwant %q", output, want)
	}
	o.startTemplates()
	o.mustSchedule(pod)
}

// TestWhatMakesTemplatesMayDoNothingElse: it reads what tenants write, so it may be taken over.
func TestWhatMakesTemplatesMayDoNothingElse(t *testing.T) {
	o := openTranslating(t, "bounded")
	const (
		hash      = "numa-0123456789abcdef0123456789abcdef"
		ofOthers  = "numa-00000000000000000000000000000000"
		named     = "this account may write only templates with the name of a translation"
		labelled  = `this account may write only templates with the label dra.numa/translated: "true"`
		untouched = "namespace default has no label dra.numa/translate with the value true or pods"
		ours      = `{dra.numa/translated: "true"}`
	)
	account := as(t, templatesName, nil)
	dryRun := []string{metav1.DryRunAll}
	write := func(namespace, name, labels string) error {
		_, err := account.ResourceV1().ResourceClaimTemplates(namespace).Create(t.Context(), own(t, name, labels), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	eventually(t, "the policy holds", func() bool { return write(o.namespace, "mine", ours) != nil })
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"one of a translation":      {write(o.namespace, hash, ours), ""},
		"one of another name":       {write(o.namespace, "mine", ours), named},
		"one with a longer name":    {write(o.namespace, hash+"0", ours), named},
		"one without the label":     {write(o.namespace, hash, "{}"), labelled},
		"one in another namespace":  {write("default", hash, ours), untouched},
		"one in that of the driver": {write("dra-numa", hash, ours), strings.Replace(untouched, "default", "dra-numa", 1)},
	} {
		mustSay(t, "create "+name, row.want, row.err)
	}
	admin := o.admin.ResourceV1().ResourceClaimTemplates(o.namespace)
	for _, template := range []*resourceapi.ResourceClaimTemplate{own(t, hash, ours), own(t, ofOthers, "{}"), own(t, "mine", ours)} {
		mustCreate(t, admin, template)
	}
	create(t, o.admin.ResourceV1().ResourceClaimTemplates("default"), own(t, hash, ours)) // from a time when the namespace had the label
	for name, row := range map[string]struct{ namespace, name, want string }{
		"one of a translation":                {o.namespace, hash, ""},
		"one of a tenant":                     {o.namespace, ofOthers, labelled},
		"one of another name":                 {o.namespace, "mine", named},
		"one that is left in a namespace":     {"default", hash, ""},
		"one that is not there, so not asked": {o.namespace, hash + "0", `resourceclaimtemplates.resource.k8s.io "` + hash + `0" not found`},
	} {
		err := account.ResourceV1().ResourceClaimTemplates(row.namespace).Delete(t.Context(), row.name, metav1.DeleteOptions{DryRun: dryRun})
		if strings.HasSuffix(row.want, "not found") {
			mustRefuse(t, "delete "+name, row.want, err)
		} else {
			mustSay(t, "delete "+name, row.want, err)
		}
	}
	mustBeForbidden(t, account, o.namespace)
}

// mustBeForbidden tries what the roles do not permit.
func mustBeForbidden(t *testing.T, account kubernetes.Interface, namespace string) {
	t.Helper()
	resources := account.ResourceV1()
	_, claims := resources.ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	_, secrets := account.CoreV1().Secrets("dra-numa").List(t.Context(), metav1.ListOptions{})
	_, lease := account.CoordinationV1().Leases("dra-numa").Get(t.Context(), "other", metav1.GetOptions{})
	_, pod := account.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	all := resources.ResourceClaimTemplates(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
	for what, err := range map[string]error{"list claims": claims, "list Secrets": secrets, "read another Lease": lease, "create pods": pod, "delete all templates": all} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("it may %s: %v", what, err)
		}
	}
}
