package snapshot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// read is the snapshot of a text.
func read(t *testing.T, text string) *Snapshot {
	t.Helper()
	s := &Snapshot{}
	if err := s.Read("text", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	n1         = "{kind: Node, apiVersion: v1, metadata: {name: n1, uid: u1}}"
	underneath = `
kind: List
apiVersion: v1
items:
- ` + n1 + `
- {kind: Pod, apiVersion: v1, metadata: {name: a, uid: ua}}
- {kind: Pod, apiVersion: v1, metadata: {name: b, uid: ub}}
- {kind: Namespace, apiVersion: v1, metadata: {name: x}}
`
	above = `
kind: List
apiVersion: v1
items:
- {kind: Pod, apiVersion: v1, metadata: {name: c}}
- {kind: Pod, apiVersion: v1, metadata: {name: a}, spec: {nodeName: n1}}
- {kind: Pod, apiVersion: v1, metadata: {name: b, uid: other}}
- {kind: Pod, apiVersion: v1, metadata: {name: a, namespace: team}}
- {kind: Namespace, apiVersion: v1, metadata: {name: y}}
`
)

// An object without a UID keeps the UID by which claims and pods refer to it.
func TestOverlayReplacesByName(t *testing.T) {
	s := read(t, underneath)
	s.Overlay(read(t, above))
	var got []string
	for _, pod := range s.Pods {
		got = append(got, strings.Join([]string{pod.Namespace + "/" + pod.Name, string(pod.UID), pod.Spec.NodeName}, " "))
	}
	want := []string{"default/a ua n1", "default/b other ", "default/c Pod default/c ", "team/a Pod team/a "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if len(s.Nodes) != 1 || s.Nodes[0].UID != "u1" {
		t.Errorf("nodes are %v", s.Nodes)
	}
	if diff := cmp.Diff([]string{"2 Namespace"}, s.IgnoredKinds()); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

// An object of each kind is kept.
func TestOverlayKeepsEveryKind(t *testing.T) {
	var text strings.Builder
	for _, kind := range []string{"DeviceClass", "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceTaintRule"} {
		text.WriteString("---\napiVersion: resource.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: x}\n")
	}
	s := &Snapshot{}
	s.Overlay(read(t, text.String()+"---"+above+"---\n# YAML\n"+n1))
	s.Overlay(read(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}"))
	got := []int{len(s.Workloads), len(s.Nodes), len(s.Classes), len(s.Slices), len(s.Claims), len(s.Templates), len(s.TaintRules), len(s.Pods)}
	if diff := cmp.Diff([]int{1, 1, 1, 1, 1, 1, 1, 4}, got); diff != "" {
		t.Errorf("objects of each kind (-want +got):\n%s", diff)
	}
}

// Texts are kept of pods and workloads if they are asked for, and with fields that have no Go
// type.
func TestTextsAreThoseThatWereRead(t *testing.T) {
	const set = "{kind: JobSet, apiVersion: jobset.x-k8s.io/v1alpha2, metadata: {name: set}, spec: {replicatedJobs: [{name: job, groupName: x}]}}"
	s, with := read(t, underneath+"---\n"+set), &Snapshot{KeepTexts: true}
	if err := with.Read("text", strings.NewReader(above+"---\n"+set+"\n---\n"+strings.Replace(n1, "n1", "n2", 1))); err != nil {
		t.Fatal(err)
	}
	s.Overlay(with)
	for object, want := range map[metav1.Object]string{
		s.Pod("default", "a"):                  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"nodeName":"n1"}}`,
		s.Workload("JobSet", "default", "set"): `{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"set"},"spec":{"replicatedJobs":[{"groupName":"x","name":"job"}]}}`,
		s.Node("n2"):                           "",
	} {
		if text := string(s.Text(object)); text != want {
			t.Errorf("%s has the text %q, want %q", object.GetName(), text, want)
		}
	}
	if text := read(t, underneath).Text(s.Pod("default", "a")); text != nil {
		t.Errorf("nobody asked for texts, and there is %q", text)
	}
}
