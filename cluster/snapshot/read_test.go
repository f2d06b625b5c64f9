package snapshot

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
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

func TestWhatCannotBeReadIsOneLineWithFileAndDocument(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"kind: Pod\nkind: Pod", `read f.yaml, document 1: yaml: unmarshal errors: line 2: key "kind" already set in map`},
		{
			"---\nkind: Node\napiVersion: v1\nmetadata: {name: n1}\n---\nkind: Pod\napiVersion: v1\nmetadata: {name: p}\nspec: {contaners: []}",
			`read f.yaml, document 2: Pod p: unknown field "spec.contaners"`,
		},
		{"kind: Pod\napiVersion: v2\nmetadata: {name: p}", `Pod of apiVersion "v2", allowed is v1`},
		{
			"kind: ResourceSlice\napiVersion: resource.k8s.io/v1beta1\nmetadata: {name: s}",
			`ResourceSlice of apiVersion "resource.k8s.io/v1beta1", allowed is resource.k8s.io/v1`,
		},
		{"kind: Pod\napiVersion: v1", "Pod without metadata.name"},
		{"apiVersion: v1", "object without kind"},
		{"- a\n- b", "want an object with apiVersion and kind"},
		{"just words", "want an object with apiVersion and kind"},
		{`{"kind": "Pod", `, "want an object with apiVersion and kind"},
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
