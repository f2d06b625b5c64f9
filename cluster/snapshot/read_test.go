package snapshot

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	amounts "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

func TestReadTakesDocumentsJSONAndLists(t *testing.T) {
	const text = `# a comment
---
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {capacity: {cpu: 4}}
---
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "team"}},
  {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}]}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: a}
  spec: {containers: [{name: main, resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {generateName: 0-n1-}
spec: {driver: d, pool: {name: n1, generation: 1, resourceSliceCount: 1}, nodeName: n1}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}, {name: s, firstAvailable: [{name: t, deviceClassName: k}, {name: u, deviceClassName: k, allocationMode: All}]}]}}
`
	var s Snapshot
	if err := s.Read("file.yaml", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	var pods []string
	for _, pod := range s.Pods {
		pods = append(pods, pod.Namespace+"/"+pod.Name)
	}
	if want := []string{"team/b", "default/a"}; !slices.Equal(pods, want) {
		t.Errorf("pods are %q, want %q in the order of reading", pods, want)
	}
	if got := s.IgnoredKinds(); !slices.Equal(got, []string{"1 Namespace"}) {
		t.Errorf("ignored are %q", got)
	}
	if cpu := s.Node("n1").Status.Allocatable[corev1.ResourceCPU]; cpu.String() != "4" {
		t.Errorf("allocatable cpu is %s, want the capacity", cpu.String())
	}
	requests := s.Pod("default", "a").Spec.Containers[0].Resources.Requests
	if cpu, memory := requests[corev1.ResourceCPU], requests[corev1.ResourceMemory]; cpu.String() != "1" || memory.String() != "1Gi" {
		t.Errorf("requests are %v, want those there are and the limits of the others", requests)
	}
	if name := s.Slices[0].Name; !strings.HasPrefix(name, "0-n1-") || name == "0-n1-" {
		t.Errorf("slice without a name is %q", name)
	}
	checkDefaults(t, s.Claim("default", "c"))
}

func checkDefaults(t *testing.T, claim *resourceapi.ResourceClaim) {
	t.Helper()
	requests := claim.Spec.Devices.Requests
	if r := requests[0].Exactly; r.AllocationMode != resourceapi.DeviceAllocationModeExactCount || r.Count != 1 {
		t.Errorf("request is for %d, %s", r.Count, r.AllocationMode)
	}
	if r := requests[1].FirstAvailable; r[0].Count != 1 || r[1].Count != 0 {
		t.Errorf("subrequests are for %d and %d", r[0].Count, r[1].Count)
	}
}

// Objects of older versions are those that the API server would make of them.
func TestReadConvertsOlderVersions(t *testing.T) {
	s := read(t, `
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: one}
spec: {devices: {requests: [{name: r, deviceClassName: k, capacity: {requests: {cpu: 2}}}]}}
---
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaim
metadata: {name: two}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k, count: 2}}]}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {devices: {requests: [{name: r, firstAvailable: [{name: a, deviceClassName: k}]}]}}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceSlice
metadata: {name: s}
spec: {driver: d, pool: {name: n1, generation: 1, resourceSliceCount: 1}, nodeName: n1, devices: [{name: x, basic: {attributes: {kind: {string: zone}}}}]}
---
apiVersion: resource.k8s.io/v1beta1
kind: DeviceClass
metadata: {name: k}
spec: {selectors: [{cel: {expression: "true"}}]}
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata: {name: rule}
spec: {deviceSelector: {driver: d}, taint: {key: a, effect: NoSchedule}}
---
apiVersion: resource.k8s.io/v1alpha3
kind: DeviceTaintRule
metadata: {name: older}
spec: {deviceSelector: {driver: d, pool: p, device: e}, taint: {key: b, value: v, effect: NoExecute, timeAdded: "2026-11-23T12:00:00Z"}}
`)
	one := s.Claim("default", "one").Spec.Devices.Requests[0].Exactly
	if cpu := one.Capacity.Requests["cpu"]; one.DeviceClassName != "k" || one.Count != 1 || cpu.String() != "2" {
		t.Errorf("request of v1beta1 is %+v", one)
	}
	if two := s.Claim("default", "two").Spec.Devices.Requests[0].Exactly; two.DeviceClassName != "k" || two.Count != 2 {
		t.Errorf("request of v1beta2 is %+v", two)
	}
	if first := s.Template("default", "t").Spec.Spec.Devices.Requests[0].FirstAvailable; len(first) != 1 || first[0].Count != 1 {
		t.Errorf("alternatives of v1beta1 are %+v", first)
	}
	if kind := s.Slices[0].Spec.Devices[0].Attributes["kind"].StringValue; kind == nil || *kind != "zone" {
		t.Errorf("device of v1beta1 is %+v", s.Slices[0].Spec.Devices[0])
	}
	if len(s.Classes[0].Spec.Selectors) != 1 || s.TaintRules[0].Spec.Taint.Key != "a" {
		t.Errorf("class is %+v, rule is %+v", s.Classes[0].Spec, s.TaintRules[0].Spec)
	}
	added := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))
	older := resourceapi.DeviceTaintRuleSpec{
		DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To("d"), Pool: ptr.To("p"), Device: ptr.To("e")},
		Taint:          resourceapi.DeviceTaint{Key: "b", Value: "v", Effect: resourceapi.DeviceTaintEffectNoExecute, TimeAdded: &added},
	}
	if diff := cmp.Diff(older, s.TaintRules[1].Spec); diff != "" || s.TaintRules[1].Name != "older" {
		t.Errorf("rule of v1alpha3 is %s (-want +got):\n%s", s.TaintRules[1].Name, diff)
	}
}

// The name of a kind means something only in its group.
func TestForeignKindsAreIgnored(t *testing.T) {
	s := read(t, `
# YAML
{apiVersion: management.cattle.io/v3, kind: Node, metadata: {name: n}, spec: {anything: 1}}
---
# YAML
{apiVersion: serving.example.com/v1, kind: Job, metadata: {name: j}}
---
# YAML
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: j}}
---
# YAML
{apiVersion: management.cattle.io/v3, kind: NodeList, items: [{metadata: {name: m}}]}
`)
	want := []string{"1 CSIDriver", "1 Job.serving.example.com", "2 Node.management.cattle.io"}
	if got := s.IgnoredKinds(); len(s.Nodes) > 0 || !slices.Equal(got, want) {
		t.Errorf("nodes %v, ignored %q, want %q", s.Nodes, got, want)
	}
}

func TestWorkloadsHaveTheirPods(t *testing.T) {
	const template = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main}]}}"
	for text, want := range map[string]struct {
		pods     int
		manifest bool
		path     string
	}{
		"apiVersion: apps/v1, kind: Deployment, spec: {" + template + "}":                                     {1, true, "spec.template"},
		"apiVersion: apps/v1, kind: Deployment, spec: {replicas: 3, " + template + "}":                        {3, true, "spec.template"},
		"apiVersion: apps/v1, kind: Deployment, spec: {paused: true, " + template + "}":                       {0, true, "spec.template"},
		"apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0, " + template + "}":                       {0, true, "spec.template"},
		"apiVersion: apps/v1, kind: ReplicaSet, spec: {replicas: 2, " + template + "}":                        {2, true, "spec.template"},
		"apiVersion: apps/v1, kind: DaemonSet, spec: {" + template + "}":                                      {0, true, "spec.template"},
		"apiVersion: v1, kind: ReplicationController, spec: {replicas: 2, " + template + "}":                  {2, true, "spec.template"},
		"apiVersion: batch/v1, kind: Job, spec: {parallelism: 4, completions: 2, " + template + "}":           {2, true, "spec.template"},
		"apiVersion: batch/v1, kind: Job, spec: {suspend: true, " + template + "}":                            {0, true, "spec.template"},
		"apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {" + template + "}}}":                {1, true, "spec.jobTemplate.spec.template"},
		"apiVersion: batch/v1, kind: CronJob, spec: {suspend: true, jobTemplate: {spec: {" + template + "}}}": {0, true, "spec.jobTemplate.spec.template"},
	} {
		s := read(t, "# YAML\n{metadata: {name: w, namespace: team}, "+text+"}")
		w := s.Workloads[0]
		pod := w.Pod(w.Templates[0])
		if w.Pods() != want.pods || w.IsManifest() != want.manifest || w.Templates[0].Path != want.path || len(w.Templates) != 1 {
			t.Errorf("%s: %d pods of %s, manifest %t", text, w.Pods(), w.Templates[0].Path, w.IsManifest())
		}
		if pod.Namespace != "team" || pod.Labels["a"] != "b" || len(pod.Spec.Containers) != 1 || pod.OwnerReferences[0].Kind != w.Kind {
			t.Errorf("%s: pod is %+v", text, pod)
		}
	}
	for text, why := range map[string]string{
		"metadata: {name: w, uid: u}": "a cluster has its pods",
		"metadata: {name: w, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: d, uid: u, controller: true}]}": "another workload has made it",
	} {
		if s := read(t, "# YAML\n{apiVersion: apps/v1, kind: ReplicaSet, "+text+"}"); s.Workloads[0].IsManifest() {
			t.Errorf("%s is a manifest, but %s", text, why)
		}
	}
}

// Of a JobSet, only the jobs are read: its other fields are not known here.
func TestJobSetHasTemplates(t *testing.T) {
	s := read(t, `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train, namespace: team}
spec:
  network: {enableDNSHostnames: true}
  replicatedJobs:
  - {name: leader, dependsOn: [{name: other, status: Ready}], template: {spec: {template: {spec: {containers: [{name: main}]}}}}}
  - {name: worker, replicas: 3, template: {spec: {parallelism: 2, template: {spec: {containers: [{name: main}]}}}}}
`)
	w := s.Workloads[0]
	if w.Pods() != 7 || len(w.Templates) != 2 || w.Templates[1].Path != "spec.replicatedJobs[1].template.spec.template" ||
		w.PodPrefix(w.Templates[1]) != "train-worker" || w.Pod(w.Templates[1]).OwnerReferences[0].Kind != "JobSet" {
		t.Errorf("workload is %+v with %d pods", w, w.Pods())
	}
	suspended := read(t, "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: w}, spec: {suspend: true, replicatedJobs: [{name: a}]}}")
	if pods := suspended.Workloads[0].Pods(); pods != 0 {
		t.Errorf("a JobSet that is suspended has %d pods", pods)
	}
}

const steppedSlice = `
kind: ResourceSlice
apiVersion: resource.k8s.io/v1
metadata: {name: s}
spec: {driver: x, nodeName: n1, pool: {name: n1, resourceSliceCount: 1}, devices: [{name: d, capacity: {cpu: {value: 8, requestPolicy: {validRange: {%s}}}}}]}`

func TestWhatCannotBeReadIsOneLineWithFileAndDocument(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"kind: Pod\nkind: Pod", `read f.yaml, document 1: yaml: unmarshal errors: line 2: key "kind" already set in map`},
		{
			"---\nkind: Node\napiVersion: v1\nmetadata: {name: n1}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {contaners: []}",
			`read f.yaml, document 2: Pod p: unknown field "spec.contaners"`,
		},
		{"kind: Pod\napiVersion: v2\nmetadata: {name: p}", `Pod of apiVersion "v2", allowed is v1`},
		{
			"kind: ResourceSlice\napiVersion: resource.k8s.io/v1alpha3\nmetadata: {name: s}",
			`ResourceSlice of apiVersion "resource.k8s.io/v1alpha3", allowed are resource.k8s.io/v1, resource.k8s.io/v1beta2, resource.k8s.io/v1beta1`,
		},
		{
			"kind: DeviceTaintRule\napiVersion: resource.k8s.io/v1beta1\nmetadata: {name: s}",
			`DeviceTaintRule of apiVersion "resource.k8s.io/v1beta1", allowed are resource.k8s.io/v1, resource.k8s.io/v1beta2, resource.k8s.io/v1alpha3`,
		},
		{
			"kind: ResourceClaim\napiVersion: resource.k8s.io/v1beta1\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, exactly: {}}]}}",
			`ResourceClaim c: unknown field "spec.devices.requests[0].exactly"`,
		},
		{"kind: CronJob\napiVersion: batch/v1beta1\nmetadata: {name: c}", `CronJob of apiVersion "batch/v1beta1", allowed is batch/v1`},
		{
			"kind: Deployment\napiVersion: apps/v1\nmetadata: {name: d}\nspec: {template: {spec: {container: []}}}",
			`Deployment d: unknown field "spec.template.spec.container"`,
		},
		{
			"kind: JobSet\napiVersion: jobset.x-k8s.io/v1alpha2\nmetadata: {name: j}\nspec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {container: []}}}}}]}",
			`JobSet j: unknown field "spec.replicatedJobs[0].template.spec.template.spec.container"`,
		},
		{fmt.Sprintf(steppedSlice, "min: 0, step: 0"), `ResourceSlice s: device d: capacity cpu: requestPolicy.validRange.step is 0, want more than 0 and at most 9223372036854775807`},
		{fmt.Sprintf(steppedSlice, "min: 0, step: -1"), "step is -1, want"},
		{fmt.Sprintf(steppedSlice, "min: 0, step: '18446744073709551616'"), "step is 18446744073709551616, want"},
		{fmt.Sprintf(steppedSlice, "step: 1"), "capacity cpu: requestPolicy.validRange has a step without min"},
		{"kind: Pod\napiVersion: v1", "Pod without metadata.name"},
		{"apiVersion: v1", "object without kind"},
		{"- a\n- b", "want an object with apiVersion and kind"},
		{"just words", "want an object with apiVersion and kind"},
		{`{"kind": "Pod", `, "did not find expected node content"},
		{"kind: List\napiVersion: v1\nitems: {a: b}", "List: json: cannot unmarshal object"},
		{
			"kind: List\napiVersion: v1\nitems: [{kind: Pod, apiVersion: v1, metadata: {name: 7}}]",
			"items[0]: Pod: json: cannot unmarshal number",
		},
		{
			"kind: Node\napiVersion: v1\nmetadata: {name: n1}\nstatus: {capacity: {cpu: lots}}",
			"Node n1: quantities must match",
		},
		{
			"kind: Node\napiVersion: v1\nmetadata: {name: n1}\n---\nkind: Node\napiVersion: v1\nmetadata: {name: n1}",
			"read f.yaml, document 2: Node n1 occurs twice, first in f.yaml, document 1",
		},
	} {
		err := (&Snapshot{}).Read("f.yaml", strings.NewReader(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "read f.yaml, document ") {
			t.Errorf("%q:\nerror %v\nwant  %s", tc.text, err, tc.want)
		}
	}
}

// A text has more than one document also if there is no line "---" between them.
func TestReadTakesAllOfAText(t *testing.T) {
	const (
		a, b   = `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}}`, `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "b"}}`
		yamlA  = "kind: Pod\napiVersion: v1\nmetadata: {name: a}\n"
		yamlB  = "kind: Pod\napiVersion: v1\nmetadata: {name: b}\n"
		inFlow = "{kind: Pod, apiVersion: v1, metadata: {name: a}}"
	)
	encode := func(order binary.AppendByteOrder, text string) string {
		var encoded []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
			encoded = order.AppendUint16(encoded, unit)
		}
		return string(encoded)
	}
	for text, want := range map[string]string{
		a + b:                                              "a b",
		a + "\n" + b + "\n":                                "a b",
		"\ufeff" + a + "\n" + b:                            "a b",
		"---\n# comment\n" + a + "\n\n" + b:                "a b",
		a + "\n---\n" + b:                                  "a b",
		a + " # comment\n":                                 "a",
		"# comment\n" + inFlow + " # comment":              "a",
		inFlow + "\n---\n" + inFlow:                        "read f, document 2: Pod default/a occurs twice, first in f, document 1",
		a + b + a:                                          "read f, document 3: Pod default/a occurs twice, first in f, document 1",
		a + b + `{"kind"`:                                  "read f, document 1: yaml: did not find expected ',' or ']'",
		inFlow + "\n{kind: Pod}":                           "read f, document 1: yaml: line 1: did not find expected ',' or ']'",
		"# comment\n" + inFlow + "\nkind: Pod":             "read f, document 1: yaml: line 2: did not find expected ',' or ']'",
		yamlA + "...\n" + yamlB:                            "a b",
		yamlA + "... # comment\n\n" + yamlB:                "a b",
		yamlA + "...\n" + b + "\n...\n":                    "a b",
		yamlA + "...\n" + inFlow:                           "read f, document 2: Pod default/a occurs twice, first in f, document 1",
		yamlA + "...\n---\n" + yamlA:                       "read f, document 2: Pod default/a occurs twice, first in f, document 1",
		yamlA + "...\napiVersion: v1\n---\n" + yamlB:       "read f, document 2: object without kind",
		encode(binary.LittleEndian, yamlA+"---\r\n"+yamlB): "a b",
		encode(binary.BigEndian, a+"\n"+b):                 "a b",
	} {
		s := &Snapshot{}
		err := s.Read("f", strings.NewReader(text))
		var names []string
		for _, pod := range s.Pods {
			names = append(names, pod.Name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// DefaultPodLevelResources of pkg/api/pod says what the requests of a pod with resources of
// its own are.
func TestRequestsOfPodsWithResourcesOfTheirOwn(t *testing.T) {
	const containers = `
  initContainers: [{name: i, resources: {limits: {cpu: 6}}}]
  containers:
  - {name: a, resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi, example.com/x: 1}}}
  - {name: b, resources: {limits: {cpu: 2, hugepages-2Mi: 2Mi}, requests: {cpu: 1}}}`
	for resources, want := range map[string]corev1.ResourceList{
		"{}":                              nil,
		"{limits: {cpu: 9, memory: 4Gi}}": {"cpu": amounts.MustParse("6"), "memory": amounts.MustParse("4Gi"), "hugepages-2Mi": amounts.MustParse("6Mi")},
		"{limits: {hugepages-2Mi: 8Mi}}":  {"cpu": amounts.MustParse("6"), "hugepages-2Mi": amounts.MustParse("8Mi")},
		"{requests: {cpu: 7, hugepages-2Mi: 8Mi}}": {"cpu": amounts.MustParse("7"), "hugepages-2Mi": amounts.MustParse("8Mi")},
	} {
		s := read(t, "kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec:\n  resources: "+resources+containers)
		if diff := cmp.Diff(want, s.Pods[0].Spec.Resources.Requests); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", resources, diff)
		}
	}
	s := read(t, "kind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {resources: {limits: {cpu: 3}}, containers: [{name: a}]}")
	if cpu := s.Pods[0].Spec.Resources.Requests["cpu"]; cpu.String() != "3" {
		t.Errorf("with limits of the pod only, it requests %s CPUs", cpu.String())
	}
}

func FuzzReadNeverPanics(f *testing.F) {
	f.Add("kind: Pod\napiVersion: v1\nmetadata: {name: p}\n---\n{}")
	f.Add(`{"kind": "PodList", "apiVersion": "v1", "items": [{}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		s := &Snapshot{}
		if err := s.Read("f", strings.NewReader(text)); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("error of several lines: %q", err)
		}
	})
}

// A copy of a cluster adds the same objects again while others read them.
func TestAddWritesNothingToCompleteObjects(t *testing.T) {
	s := read(t, `
{kind: Node, apiVersion: v1, metadata: {name: n1}, status: {capacity: {cpu: 4}}}
---
{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {resources: {limits: {cpu: 4}}, overhead: {cpu: 1}, containers: [{name: a, resources: {limits: {cpu: 1}}}]}}
---
{kind: ResourceClaim, apiVersion: resource.k8s.io/v1, metadata: {name: c}, spec: {devices: {requests: [{name: r, exactly: {capacity: {requests: {cpu: 1}}}}]}}}
---`+fmt.Sprintf(steppedSlice, "min: 0, step: 1"))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				s.Nodes[0].DeepCopy()
				s.Pods[0].DeepCopy()
				s.Claims[0].DeepCopy()
				s.Slices[0].DeepCopy()
			}
		}
	}()
	for range 2000 {
		var again Snapshot
		for _, object := range []metav1.Object{s.Nodes[0], s.Pods[0], s.Claims[0], s.Slices[0]} {
			if err := again.Add(object, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	close(stop)
	<-stopped
}

// With amounts such as 1e300000000, which an API server accepts in claims, nothing can be
// computed.
func TestEndlessAmountsAreLimited(t *testing.T) {
	manifest := strings.ReplaceAll(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {capacity: {requests: {cpu: ENDLESS, memory: 1Gi}}}}, {name: s, firstAvailable: [{name: t, capacity: {requests: {cpu: ENDLESS}}}]}]}}
status: {allocation: {devices: {results: [{request: r, driver: d, pool: p, device: x, consumedCapacity: {cpu: ENDLESS}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t}
spec: {spec: {devices: {requests: [{name: r, exactly: {capacity: {requests: {cpu: -ENDLESS}}}}]}}}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1}
status: {capacity: {cpu: ENDLESS}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: d
  nodeName: worker-1
  pool: {name: worker-1, generation: 1, resourceSliceCount: 1}
  sharedCounters: [{name: c, counters: {c: {value: ENDLESS}}}]
  devices:
  - name: x
    capacity:
      cpu: {value: ENDLESS, requestPolicy: {default: ENDLESS, validRange: {min: ENDLESS, max: ENDLESS, step: ENDLESS}}}
      memory: {value: 1Gi, requestPolicy: {default: 1Gi, validValues: [1Gi, ENDLESS]}}
    consumesCounters: [{counterSet: c, counters: {c: {value: ENDLESS}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      overhead: {cpu: ENDLESS}
      resources: {requests: {cpu: ENDLESS}, limits: {cpu: ENDLESS}}
      initContainers: [{name: i, resources: {limits: {cpu: ENDLESS}}}]
      containers: [{name: m, resources: {requests: {cpu: ENDLESS}}}]
`, "ENDLESS", "1e999999999")
	s := read(t, manifest)
	claim, template := s.Claims[0], s.Templates[0].Spec.Spec.Devices.Requests[0].Exactly
	pod := s.Workloads[0].Pod(s.Workloads[0].Templates[0]).Spec
	device, counters := s.Slices[0].Spec.Devices[0], s.Slices[0].Spec.SharedCounters[0].Counters
	cpu := device.Capacity["cpu"]
	for what, amount := range map[string]amounts.Quantity{
		"request":          claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests["cpu"],
		"alternative":      claim.Spec.Devices.Requests[1].FirstAvailable[0].Capacity.Requests["cpu"],
		"allocation":       claim.Status.Allocation.Devices.Results[0].ConsumedCapacity["cpu"],
		"node":             s.Nodes[0].Status.Allocatable["cpu"],
		"device":           cpu.Value,
		"default":          *cpu.RequestPolicy.Default,
		"minimum":          *cpu.RequestPolicy.ValidRange.Min,
		"maximum":          *cpu.RequestPolicy.ValidRange.Max,
		"step":             *cpu.RequestPolicy.ValidRange.Step,
		"valid value":      device.Capacity["memory"].RequestPolicy.ValidValues[1],
		"counter":          counters["c"].Value,
		"consumed counter": device.ConsumesCounters[0].Counters["c"].Value,
		"overhead":         pod.Overhead["cpu"],
		"request of a pod": pod.Resources.Requests["cpu"],
		"limit of a pod":   pod.Resources.Limits["cpu"],
		"init container":   pod.InitContainers[0].Resources.Limits["cpu"],
		"main container":   pod.Containers[0].Resources.Requests["cpu"],
	} {
		if !spelling.Countable(amount) || amount.CmpInt64(math.MaxInt64) != 0 {
			t.Errorf("%s: %s", what, amount.String())
		}
	}
	if amount := template.Capacity.Requests["cpu"]; !spelling.Countable(amount) || amount.Sign() >= 0 {
		t.Errorf("template: %s", amount.String())
	}
	if memory := claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests["memory"]; memory.String() != "1Gi" {
		t.Errorf("memory is %s", memory.String())
	}
}
