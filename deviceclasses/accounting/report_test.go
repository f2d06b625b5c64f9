package accounting

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// cluster is a node of 16 CPUs whose four zones have 4 CPUs each, and a node without
// zones.
func cluster() Cluster {
	var devices []resourceapi.Device
	for range 4 {
		devices = append(devices, resourceapi.Device{Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"cpu": {Value: resource.MustParse("4")}, "memory": {Value: resource.MustParse("1Gi")},
		}})
	}
	var nodes []*corev1.Node
	for _, name := range []string{"node", "plain"} {
		node := &corev1.Node{}
		node.Name = name
		node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110")}
		nodes = append(nodes, node)
	}
	return Cluster{
		Nodes: nodes,
		Slices: []*resourceapi.ResourceSlice{
			{Spec: resourceapi.ResourceSliceSpec{Driver: "dra.numa", NodeName: ptr.To("node"), Devices: devices}},
			{Spec: resourceapi.ResourceSliceSpec{Driver: "dra.numa", NodeName: ptr.To("gone"), Devices: devices[:1]}},
			{Spec: resourceapi.ResourceSliceSpec{Driver: "gpu", NodeName: ptr.To("plain"), Devices: devices}},
		},
	}
}

// supply is what every report says of the nodes of the cluster.
const supply = `gone published: cpu 4, memory 1Gi
node published: cpu 16, memory 4Gi
node allocatable: cpu 16, memory 4Gi
`

// run adds a pod on the node, with a claim of that many CPUs unless it is "".
func (c *Cluster) run(name, cpus string, lines ...string) *corev1.Pod {
	pod := podOf(lines...)
	pod.Namespace, pod.Name, pod.UID = "ns", name, types.UID(name)
	pod.Spec.NodeName = "node"
	if cpus != "" {
		claim := allocated(result("dra.numa", "z", cpus))
		claim.Name = name
		claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: pod.UID}}
		c.Claims = append(c.Claims, claim)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &claim.Name}}
	}
	c.Pods = append(c.Pods, pod)
	return pod
}

// lines is a report as text.
func (r Report) lines() string {
	var text strings.Builder
	for _, node := range r.Nodes {
		for _, part := range []struct {
			name    string
			amounts corev1.ResourceList
		}{
			{"published", node.Published},
			{"allocatable", node.Allocatable},
			{"claimed", node.Claimed},
			{"requested", node.Requested},
			{"uncounted", node.Uncounted},
			{"overcommit", node.Overcommit},
		} {
			if len(part.amounts) > 0 {
				text.WriteString(node.Name + " " + part.name + ": " + Text(part.amounts) + "\n")
			}
		}
	}
	for _, pod := range r.Pods {
		text.WriteString(pod.Namespace + "/" + pod.Name + " on " + pod.Node + ": holds " + Text(pod.Held) +
			", requests " + Text(pod.Requested) + ", uncounted " + Text(pod.Uncounted) + "\n")
	}
	return text.String()
}

// Claims hold 8 CPUs. The scheduler counts 1 of them, and lets pods request the rest of
// 16.
func TestBalanceReportsOvercommit(t *testing.T) {
	c := cluster()
	c.run("silent", "4", "main a uses=c")
	c.run("half", "4", "main a cpu=1 uses=c")
	c.run("plain", "", "main a cpu=15")
	ended := c.run("ended", "", "main a cpu=15")
	ended.Status.Phase = corev1.PodSucceeded
	c.run("pending", "", "main a cpu=15").Spec.NodeName = ""
	want := supply + `node claimed: cpu 8
node requested: cpu 16
node uncounted: cpu 7
node overcommit: cpu 7
ns/half on node: holds cpu 4, requests cpu 1, uncounted cpu 3
ns/silent on node: holds cpu 4, requests , uncounted cpu 4
`
	if diff := cmp.Diff(want, Balance(c).lines()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestBalanceOfMirroredPodsIsEven(t *testing.T) {
	c := cluster()
	for _, name := range []string{"a", "b"} {
		pod := c.run(name, "4", "init i uses=c", "main a uses=c")
		mirrored := Mirror(pod, sharesOf("c cpu=4"))
		*pod = *mirrored.Pod
	}
	c.run("plain", "", "main a cpu=8")
	report := Balance(c)
	if len(report.Pods) != 0 || len(report.Nodes[1].Overcommit) != 0 || Text(report.Nodes[1].Requested) != "cpu 16" {
		t.Errorf("report:\n%s", report.lines())
	}
}

// A shared claim counts once, in the first pod. A claim without pods counts as well.
func TestBalanceOfSharedAndUnusedClaims(t *testing.T) {
	c := cluster()
	c.run("first", "4", "main a cpu=4 uses=c")
	second := c.run("second", "", "main a uses=c")
	second.Spec.ResourceClaims = c.Pods[0].Spec.ResourceClaims
	c.Claims[0].Status.ReservedFor = append(c.Claims[0].Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: "second", UID: "second"})
	unused := allocated(result("dra.numa", "z", "2"))
	unused.Name = "unused"
	c.Claims = append(c.Claims, unused)
	want := supply + `node claimed: cpu 6
node requested: cpu 4
node uncounted: cpu 2
`
	if diff := cmp.Diff(want, Balance(c).lines()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	c.Claims[0].Status.ReservedFor = c.Claims[0].Status.ReservedFor[1:] // the first pod has ended
	c.Pods = c.Pods[1:]
	if report := Balance(c); len(report.Pods) != 1 || Text(report.Pods[0].Uncounted) != "cpu 4" {
		t.Errorf("report:\n%s", report.lines())
	}
}

// The scheduler counts a pod that is being resized as the largest of what it requests,
// has been allocated, and runs with. An infeasible request does not count (KEP-1287).
func TestBalanceWhileAPodIsResized(t *testing.T) {
	cpus := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(amount)}
	}
	pending := func(reason string) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: reason}}
	}
	for what, row := range map[string]struct {
		requests, allocated, runs string
		conditions                []corev1.PodCondition
		requested, uncounted      string
	}{
		"no resize":            {"4", "4", "4", nil, "4", ""},
		"no resize, too small": {"1", "1", "1", nil, "1", "3"},
		"grows":                {"6", "6", "4", nil, "6", ""},
		"shrinks":              {"2", "2", "4", nil, "4", ""},
		"has shrunk":           {"2", "2", "2", nil, "2", "2"},
		"deferred":             {"6", "4", "4", pending(corev1.PodReasonDeferred), "6", ""},
		"infeasible":           {"99", "4", "4", pending(corev1.PodReasonInfeasible), "4", ""},
		"infeasible, too small": {
			"99", "3", "3", pending(corev1.PodReasonInfeasible), "3", "1",
		},
	} {
		for _, level := range []string{"container", "pod"} {
			c := cluster()
			line := "main a cpu=" + row.requests + " uses=c"
			if level == "pod" {
				line = "main a uses=c"
			}
			pod := c.run("p", "4", line)
			pod.Status.Conditions = row.conditions
			if level == "pod" {
				pod.Spec.Resources = &corev1.ResourceRequirements{Requests: cpus(row.requests)}
				pod.Status.AllocatedResources, pod.Status.Resources = cpus(row.allocated), &corev1.ResourceRequirements{Requests: cpus(row.runs)}
			} else {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
					Name: "a", AllocatedResources: cpus(row.allocated), Resources: &corev1.ResourceRequirements{Requests: cpus(row.runs)},
				}}
			}
			node := Balance(c).Nodes[1]
			want := "cpu " + row.requested + "; "
			if row.uncounted != "" {
				want += "cpu " + row.uncounted
			}
			if got := Text(node.Requested) + "; " + Text(node.Uncounted); got != want {
				t.Errorf("%s of a %s: requested and uncounted are %q, want %q", what, level, got, want)
			}
		}
	}
}
