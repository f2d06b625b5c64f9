package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: "team", UID: types.UID("uid of " + name),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
}

func pod(name, node string, priority *int32, age time.Duration) *corev1.Pod {
	meta := named(name)
	meta.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-age))
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: node, Priority: priority}}
}

func cluster() *fake.Clientset {
	return fake.NewClientset(
		&corev1.Node{ObjectMeta: named("node")},
		&resourceapi.DeviceClass{ObjectMeta: named("class")},
		&resourceapi.ResourceSlice{ObjectMeta: named("slice")},
		&resourceapi.ResourceClaim{ObjectMeta: named("claim")},
		&resourceapi.ResourceClaimTemplate{ObjectMeta: named("template")},
		&resourceapi.DeviceTaintRule{ObjectMeta: named("rule")},
		pod("young", "", nil, time.Second), pod("a-old", "", nil, time.Minute), pod("old", "", ptr.To[int32](0), time.Minute),
		pod("important", "", ptr.To[int32](7), 0), pod("unimportant", "", ptr.To[int32](-1), time.Hour),
	)
}

// bareNames returns the names of objects. They must not have managed fields.
func bareNames[T metav1.Object](t *testing.T, objects []T) (names []string) {
	t.Helper()
	for _, object := range objects {
		names = append(names, object.GetName())
		if object.GetManagedFields() != nil {
			t.Errorf("%s has managed fields", object.GetName())
		}
	}
	return names
}

func TestEveryKindIsListedAndPodsWaitInTheSchedulersOrder(t *testing.T) {
	client := cluster()
	s, err := Source{client}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Concat(bareNames(t, s.Nodes), bareNames(t, s.Classes), bareNames(t, s.Slices), bareNames(t, s.Claims),
		bareNames(t, s.Templates), bareNames(t, s.TaintRules), bareNames(t, s.Waiting()))
	want := []string{"node", "class", "slice", "claim", "template", "rule", "important", "a-old", "old", "young", "unimportant"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for _, action := range client.Actions() {
		list, isList := action.(core.ListActionImpl)
		if !isList || list.ListOptions.ResourceVersion != "0" || list.ListOptions.Limit == 0 {
			t.Errorf("%s %s with %+v, want a list of version 0 that may come in pages", action.GetVerb(), action.GetResource().Resource, list.ListOptions)
		}
	}
}

// A server that cannot answer from memory reads its store. Without a limit it would read
// everything at once.
func TestLongListsComeInPages(t *testing.T) {
	client := cluster()
	var asked []string
	client.PrependReactor("list", "nodes", func(action core.Action) (bool, runtime.Object, error) {
		options := action.(core.ListActionImpl).ListOptions
		asked = append(asked, options.ResourceVersion+" "+options.Continue)
		list := &corev1.NodeList{Items: []corev1.Node{{ObjectMeta: named("node-" + options.Continue)}}}
		list.Continue = map[string]string{"": "2", "2": "3"}[options.Continue]
		return true, list, nil
	})
	s, err := Source{client}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Nodes) != 3 || s.Nodes[2].Name != "node-3" {
		t.Errorf("%d nodes", len(s.Nodes))
	}
	if diff := cmp.Diff([]string{"0 ", " 2", " 3"}, asked); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// The error names the kind and the verb that the user lacks. A kind that the server does
// not serve is an error, unless its feature gate may be off.
func TestWhatCannotBeListed(t *testing.T) {
	forbidden := func(resource schema.GroupResource) error {
		return apierrors.NewForbidden(resource, "", errors.New(`User "ann" cannot list resource "`+resource.Resource+`" at the cluster scope`))
	}
	missing := func(resource schema.GroupResource) error {
		return apierrors.NewGenericServerResponse(404, "get", resource, "", "", 0, false)
	}
	for _, row := range []struct {
		resource string
		err      func(schema.GroupResource) error
		want     string
	}{
		{"nodes", forbidden, `list Nodes: nodes is forbidden: User "ann" cannot list resource "nodes" at the cluster scope`},
		{
			"deviceclasses",
			forbidden,
			`list DeviceClasses: deviceclasses.resource.k8s.io is forbidden: User "ann" cannot list`,
		},
		{"resourceslices", missing, `list ResourceSlices: the server could not find the requested resource`},
		{"resourceclaims", forbidden, `list ResourceClaims: `},
		{"resourceclaimtemplates", forbidden, `list ResourceClaimTemplates: `},
		{"devicetaintrules", forbidden, `list DeviceTaintRules: `},
		{"devicetaintrules", missing, ``},
		{"pods", forbidden, `list Pods: `},
	} {
		client := cluster()
		client.PrependReactor("list", row.resource, func(action core.Action) (bool, runtime.Object, error) {
			return true, nil, row.err(action.GetResource().GroupResource())
		})
		_, err := Source{client}.Snapshot(t.Context())
		if (err == nil) != (row.want == "") || err != nil && !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", row.resource, err, row.want)
		}
	}
}

func TestEndedContextIsAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Source{cluster()}).Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// without makes the cluster serve no DeviceTaintRules of the versions.
func without(client *fake.Clientset, versions ...string) {
	client.PrependReactor("list", "devicetaintrules", func(action core.Action) (bool, runtime.Object, error) {
		served := action.GetResource()
		return slices.Contains(versions, served.Version), nil, apierrors.NewGenericServerResponse(404, "list", served.GroupResource(), "", "", 0, false)
	})
}

// olderRules are a cluster with a rule of each version, as Kubernetes 1.36 serves them.
func olderRules(t *testing.T) *fake.Clientset {
	t.Helper()
	client := cluster()
	taint := resourcev1beta2.DeviceTaint{Key: "b", Effect: resourcev1beta2.DeviceTaintEffectNoSchedule}
	beta := &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "beta"}, Spec: resourcev1beta2.DeviceTaintRuleSpec{Taint: taint}}
	alpha := &resourcev1alpha3.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "alpha"}, Spec: resourcev1alpha3.DeviceTaintRuleSpec{Taint: resourcev1alpha3.DeviceTaint{Key: "a"}}}
	if _, err := client.ResourceV1beta2().DeviceTaintRules().Create(t.Context(), beta, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ResourceV1alpha3().DeviceTaintRules().Create(t.Context(), alpha, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return client
}

// lack is what is read of a cluster that lacks versions of DeviceTaintRules.
type lack struct {
	versions      []string
	rule, version string
}

func lacks() []lack {
	return []lack{
		{nil, "rule", "v1"},
		{[]string{"v1"}, "beta", "v1beta2"},
		{[]string{"v1", "v1beta2"}, "alpha", "v1alpha3"},
		{[]string{"v1", "v1beta2", "v1alpha3"}, "", snapshot.NotServed},
	}
}

// Kubernetes 1.36 has no v1 of DeviceTaintRules, but may have older versions.
func TestTaintRulesAreReadInTheVersionThatIsServed(t *testing.T) {
	for _, row := range lacks() {
		client := olderRules(t)
		without(client, row.versions...)
		s, err := Source{client}.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(bareNames(t, s.TaintRules), " "); got != row.rule || s.RuleVersion != row.version {
			t.Errorf("without %q: rules %q of version %q, want %q of %q", row.versions, got, s.RuleVersion, row.rule, row.version)
		}
	}
}
