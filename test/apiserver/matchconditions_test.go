package apiserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const (
	ours   = `config: [{opaque: {driver: dra.numa, parameters: {apiVersion: dra.numa/v1alpha1, kind: ZoneConfig, partition: isolated}}}]`
	others = `config: [{opaque: {driver: gpu.example.com, parameters: {driver: dra.numa}}}]`
	zone   = `requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2, memory: 1Gi}}}}]`
	either = `requests: [{name: zone, firstAvailable: [{name: a, deviceClassName: zone.dra.numa}, {name: b, deviceClassName: gpu.example.com}]}]`
	gpu    = `requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]`
)

// TestOnlyParametersNeedTheWebhook: while the webhook is away and fails closed, the API
// server refuses what has parameters for the driver or asks for a translation, and nothing
// else.
func TestOnlyParametersNeedTheWebhook(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	create(t, admin.ResourceV1().ResourceClaimTemplates("default"), object.Parse[resourceapi.ResourceClaimTemplate](t,
		`{metadata: {name: away}, spec: {spec: {devices: {`+zone+`, `+ours+`}}}}`))
	installChart(t, "webhook.enabled=true", "webhook.mirrorRequests=true", "webhook.translate.enabled=true", "webhook.failurePolicy=Fail")
	pointWebhooks(t, admin, "127.0.0.1:1") // where no program listens
	translatesPods(t, admin, "default")
	inEffect := func() bool {
		return isAway(tryToCreate(t, admin, "ResourceClaim", `{metadata: {name: c}, spec: {devices: {`+zone+`, `+ours+`}}}`))
	}
	for deadline := time.Now().Add(patience); !inEffect(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the webhook is not asked")
		}
	}
	for name, row := range map[string]struct {
		kind, object string
		refused      bool
	}{
		"claim with parameters":    {"ResourceClaim", `{metadata: {name: c}, spec: {devices: {` + either + `, ` + ours + `}}}`, true},
		"claim with an annotation": {"ResourceClaim", `{metadata: {name: c, annotations: {resource.kubernetes.io/pod-claim-name: c}}, spec: {devices: {` + zone + `, ` + ours + `}}}`, true},
		"claim of zones":           {"ResourceClaim", `{metadata: {name: c}, spec: {devices: {` + zone + `}}}`, false},
		"claim of either":          {"ResourceClaim", `{metadata: {name: c}, spec: {devices: {` + either + `}}}`, false},
		"claim of others":          {"ResourceClaim", `{metadata: {name: c}, spec: {devices: {` + gpu + `, ` + others + `}}}`, false},
		"claim of nothing":         {"ResourceClaim", `{metadata: {name: c}, spec: {devices: {}}}`, false},
		"template with parameters": {"ResourceClaimTemplate", `{metadata: {name: c}, spec: {spec: {devices: {` + zone + `, ` + ours + `}}}}`, true},
		"template of zones":        {"ResourceClaimTemplate", `{metadata: {name: c}, spec: {spec: {devices: {` + zone + `}}}}`, false},
		"template of others":       {"ResourceClaimTemplate", `{metadata: {name: c}, spec: {spec: {devices: {` + gpu + `, ` + others + `}}}}`, false},
		"class with parameters":    {"DeviceClass", `{metadata: {name: c.example.com}, spec: {` + ours + `}}`, true},
		"class of the chart":       {"DeviceClass", `{metadata: {name: ours.dra.numa}, spec: {` + ours + `}}`, false},
		"class of others":          {"DeviceClass", `{metadata: {name: c.example.com}, spec: {` + others + `}}`, false},
		"class without parameters": {"DeviceClass", `{metadata: {name: c.example.com}}`, false},
		"pod without a claim":      {"Pod", `{metadata: {name: p}, spec: {containers: [{name: a, image: none}]}}`, false},
		"pod to be translated":     {"Pod", `{metadata: {name: p, labels: {dra.numa/translate: "true"}}, spec: {containers: [{name: a, image: none}]}}`, true},
		"pod not to be translated": {"Pod", `{metadata: {name: p, labels: {dra.numa/translate: "false"}}, spec: {containers: [{name: a, image: none}]}}`, false},
		"pod with a claim":         {"Pod", `{metadata: {name: p}, spec: {resourceClaims: [{name: c, resourceClaimTemplateName: away}], containers: [{name: a, image: none}]}}`, false},
	} {
		err := tryToCreate(t, admin, row.kind, row.object)
		if row.refused && !isAway(err) || !row.refused && err != nil {
			t.Errorf("%s: error %v, want a refusal: %t", name, err, row.refused)
		}
	}
	mustBeGenerated(t, admin, "away")
}

// translatesPods lets pods of the namespace ask for a translation until the test ends.
func translatesPods(t *testing.T, admin kubernetes.Interface, namespace string) {
	t.Helper()
	label := func(ctx context.Context, value string) {
		patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, translate.Label, value)
		if _, err := admin.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	label(t.Context(), strconv.Quote(translate.LabelPods))
	t.Cleanup(func() { label(context.Background(), "null") })
}

// mustBeGenerated waits until Kubernetes has generated the claim of a pod from a template.
func mustBeGenerated(t *testing.T, admin kubernetes.Interface, template string) {
	t.Helper()
	pod := create(t, admin.CoreV1().Pods("default"), object.Parse[corev1.Pod](t, `{metadata: {name: generated}, spec: {
		resourceClaims: [{name: c, resourceClaimTemplateName: `+template+`}], containers: [{name: a, image: none}]}}`))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		now, err := admin.CoreV1().Pods("default").Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(now.Status.ResourceClaimStatuses) > 0 {
			return
		}
	}
	t.Error("no claim is generated")
}

// isAway reports whether the API server refuses an object because the webhook does not
// answer.
func isAway(err error) bool {
	return apierrors.IsInternalError(err) && (strings.Contains(err.Error(), `failed calling webhook "parameters.webhook.dra.numa"`) || strings.Contains(err.Error(), `failed calling webhook "translate-pods.webhook.dra.numa"`))
}

// tryToCreate creates an object as a dry run.
func tryToCreate(t *testing.T, api kubernetes.Interface, kind, text string) error {
	t.Helper()
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var err error
	switch kind {
	case "ResourceClaim":
		_, err = api.ResourceV1().ResourceClaims("default").Create(t.Context(), object.Parse[resourceapi.ResourceClaim](t, text), dryRun)
	case "ResourceClaimTemplate":
		_, err = api.ResourceV1().ResourceClaimTemplates("default").Create(t.Context(), object.Parse[resourceapi.ResourceClaimTemplate](t, text), dryRun)
	case "DeviceClass":
		_, err = api.ResourceV1().DeviceClasses().Create(t.Context(), object.Parse[resourceapi.DeviceClass](t, text), dryRun)
	case "Pod":
		_, err = api.CoreV1().Pods("default").Create(t.Context(), object.Parse[corev1.Pod](t, text), dryRun)
	default:
		t.Fatalf("unknown kind %s", kind)
	}
	return err
}
