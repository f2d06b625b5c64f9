package translation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

func of(t *testing.T, text string, asked func(metav1.Object) bool, change ...func(*translate.Options)) (*Report, *snapshot.Snapshot) {
	t.Helper()
	objects := &snapshot.Snapshot{KeepTexts: true}
	if err := objects.Read("text", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	options := translate.Options{
		Scope: translate.ScopeContainer, Policy: translate.PolicySingleNUMANode, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: 2,
	}
	for _, each := range change {
		each(&options)
	}
	report := Of(objects, options, asked)
	report.Sum()
	return report, objects
}

func all(metav1.Object) bool { return true }

// rows says what the items are.
func rows(report *Report) (list []string) {
	for _, item := range report.Items {
		row := fmt.Sprintf("%s %s %s: %d", item.Kind, item.Name, item.Job, item.Pods)
		if item.Result != Translated {
			row += " " + item.Result
		}
		list = append(list, strings.ReplaceAll(row, " :", ":"))
	}
	return list
}

const spec = "{containers: [{name: main, resources: {limits: {cpu: 2, memory: 1Gi}}}]}"

// made is a pod with a controller, which runs.
func made(name, kind, owner, labels string) string {
	return fmt.Sprintf("\n---\n{apiVersion: v1, kind: Pod, metadata: {name: %s, labels: {%s}, ownerReferences: [{apiVersion: x/v1, kind: %s, name: %s, uid: u, controller: true}]}, spec: %s}",
		name, labels, kind, owner, strings.Replace(spec, "{containers", "{nodeName: worker, containers", 1))
}

// The pods of a workload that is among the objects are not listed, whatever is between them.
func TestPodsAreListedWithTheirWorkload(t *testing.T) {
	workloads := `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: d}, spec: {replicas: 2, template: {spec: SPEC}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: adopts, uid: d}, spec: {template: {spec: SPEC}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: old, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: adopts, uid: d, controller: true}]}, spec: {template: {spec: SPEC}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: nightly, uid: c}, spec: {jobTemplate: {spec: {template: {spec: SPEC}}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, uid: s}, spec: {template: {spec: SPEC}}}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, uid: j}
spec:
  replicatedJobs:
  - {name: a, template: {spec: {template: {spec: SPEC}}}}
  - {name: a-b, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}`
	pods := made("web-1-x", "ReplicaSet", "web-r1", "pod-template-hash: r1") +
		made("old-x", "ReplicaSet", "old", "") +
		made("nightly-77-x", "Job", "nightly-77", "") +
		made("agent-x", "DaemonSet", "agent", "") +
		made("set-a-b-0-0-x", "Job", "set-a-b-0", "jobset.sigs.k8s.io/jobset-name: set")
	report, objects := of(t, strings.ReplaceAll(workloads, "SPEC", spec)+pods, all)
	want := []string{"Deployment web: 2", "Deployment adopts: 1", "CronJob nightly: 1", "DaemonSet agent: 0", "JobSet set a: 1", "JobSet set a-b: 1 leftAlone"}
	if diff := cmp.Diff(want, rows(report)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if err := report.Apply(objects); err != nil {
		t.Fatal(err)
	}
	var waiting []string
	for _, pod := range objects.Waiting() {
		waiting = append(waiting, pod.Name)
	}
	if diff := cmp.Diff([]string{"web-1-x", "old-x", "nightly-77-x", "agent-x"}, waiting); diff != "" { // not that of job a-b, and the workloads make none
		t.Errorf("pods that wait again (-want +got):\n%s", diff)
	}
	if report.Items[3].Pods != 1 {
		t.Errorf("the DaemonSet has %d pods", report.Items[3].Pods)
	}
}

// Without the workload, the pods of one controller are counted together, as far as the same
// becomes of them.
func TestPodsAreCountedByTheirController(t *testing.T) {
	text := "null" + made("web-1-x", "ReplicaSet", "web-r1", "pod-template-hash: r1") + made("web-1-y", "ReplicaSet", "web-r1", "pod-template-hash: r1") +
		strings.Replace(made("web-2-x", "ReplicaSet", "web-r2", "pod-template-hash: r2"), "cpu: 2", "cpu: 4", 1) + made("db-0", "StatefulSet", "db", "") +
		made("rs-x", "ReplicaSet", "rs", "") + "\n---\n{apiVersion: v1, kind: Pod, metadata: {name: alone}, spec: " + spec + "}"
	report, objects := of(t, text, all)
	if diff := cmp.Diff([]string{"Deployment web: 2", "Deployment web: 1", "StatefulSet db: 1", "ReplicaSet rs: 1", "Pod alone: 1"}, rows(report)); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	list, without, err := report.Manifests(objects)
	if err != nil || without != 5 || len(list) != 4 { // two shapes, once with and once without a namespace; and the pod alone
		t.Errorf("%d manifests, %d pods without, error %v", len(list), without, err)
	}
	some, _ := of(t, text, func(object metav1.Object) bool { return object.GetName() == "alone" })
	if diff := cmp.Diff([]string{"Pod alone: 1"}, rows(some)); diff != "" {
		t.Errorf("of one that is asked for (-want +got):\n%s", diff)
	}
}

// What the webhook leaves as it is, the report leaves alone. A pod that runs has its node
// from the scheduler.
func TestWhatTheWebhookLeavesIsLeftAlone(t *testing.T) {
	const off = `labels: {dra.numa/translate: "false"}`
	bound := strings.Replace(spec, "{containers", "{nodeName: worker, containers", 1)
	deployment := func(metadata, spec string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {metadata: {" + metadata + "}, spec: " + spec + "}}}"
	}
	pod := func(metadata, spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p, " + metadata + "}, spec: " + spec + "}"
	}
	const isOff, isBound = `the pod has the label dra.numa/translate: "false"`, "the pod is bound to node worker, and Kubernetes allocates claims when it binds"
	for name, row := range map[string]struct{ text, want string }{
		"template":                {deployment("", spec), ""},
		"template of a node":      {deployment("", bound), isBound},
		"template with the label": {deployment(off, spec), isOff},
		"pod that runs":           {pod("", bound), ""},
		"pod with the label":      {pod(off, bound), isOff},
		"template for Windows":    {deployment("", strings.Replace(spec, "{containers", "{os: {name: windows}, containers", 1)), "the pod is for Windows, and only nodes of Linux have zones"},
	} {
		report, objects := of(t, row.text, all)
		item := report.Items[0]
		if item.Why != row.want || (item.Result == LeftAlone) != (row.want != "") {
			t.Errorf("%s: %s, why %q, want %q", name, item.Result, item.Why, row.want)
		}
		if err := report.Apply(objects); err != nil {
			t.Fatal(err)
		}
		if waits := len(objects.Pods[0].Spec.ResourceClaims) > 0; waits != (row.want == "") {
			t.Errorf("%s: the pod has a claim: %t", name, waits)
		}
	}
}

// kubectl apply removes what the pods of a stored workload no longer ask for, whatever has
// made the workload.
func TestApplyChangesWhatIsStored(t *testing.T) {
	const stored = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team, uid: d, resourceVersion: "7"}, spec: {template: {spec: {
		initContainers: [{name: init, resources: {limits: {cpu: 2, memory: 1Gi}}}],
		containers: [{name: main, resources: {limits: {cpu: 3, memory: 1Gi, example.com/gpu: 1}, requests: {cpu: 3, memory: 1Gi, example.com/gpu: 1}}}]}}}}`
	current, err := yaml.YAMLToJSON([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[string]string{
		translate.CPULimitKeep: `{limits: {cpu: 2, memory: 1Gi}}; {limits: {cpu: 4, memory: 1Gi}, requests: {cpu: 4, memory: 1Gi}}`,
		translate.CPULimitLift: `{limits: {memory: 1Gi}, requests: {cpu: 2}}; {limits: {memory: 1Gi}, requests: {cpu: 4, memory: 1Gi}}`,
	} {
		report, objects := of(t, stored, all, func(options *translate.Options) {
			options.CPULimit, options.Twins = limit, map[corev1.ResourceName]string{"example.com/gpu": "gpu.example.com"}
		})
		list, _, err := report.Manifests(objects)
		if err != nil {
			t.Fatal(err)
		}
		modified, err := json.Marshal(list[len(list)-1])
		if err != nil {
			t.Fatal(err)
		}
		for made, original := range map[string][]byte{"create": nil, "apply": current} {
			patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, schema, true)
			if err != nil {
				t.Fatal(err)
			}
			after, err := strategicpatch.StrategicMergePatch(current, patch, appsv1.Deployment{})
			if err != nil {
				t.Fatal(err)
			}
			deployment := object.Parse[appsv1.Deployment](t, string(after))
			var got, wanted []corev1.ResourceRequirements
			for _, container := range containersOf(&corev1.Pod{Spec: deployment.Spec.Template.Spec}) {
				container.Resources.Claims = nil
				got = append(got, container.Resources)
			}
			for text := range strings.SplitSeq(want, "; ") {
				wanted = append(wanted, *object.Parse[corev1.ResourceRequirements](t, text))
			}
			if diff := cmp.Diff(wanted, got); diff != "" || len(deployment.Spec.Template.Spec.ResourceClaims) != 1 {
				t.Errorf("--cpu-limit %s of what kubectl %s has made (-want +got):\n%s", limit, made, diff)
			}
		}
	}
}
