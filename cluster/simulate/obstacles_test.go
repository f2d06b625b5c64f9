package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// obstacles are the stages and sentences of a node's obstacles, each followed by those
// who hold what is missing.
func obstacles(node NodeExplanation) (lines []string) {
	for _, o := range node.Obstacles {
		lines = append(lines, fmt.Sprintf("%s: %s", o.Stage, o.Sentence))
		for _, holder := range o.HeldBy {
			lines = append(lines, "  "+holder.String())
		}
	}
	return lines
}

func reserved(claim string, pods ...string) string {
	var users []string
	for _, pod := range pods {
		users = append(users, fmt.Sprintf("{resource: pods, name: %[1]s, uid: Pod default/%[1]s}", pod))
	}
	return strings.Replace(claim, "status:\n", "status:\n  reservedFor: ["+strings.Join(users, ", ")+"]\n", 1)
}

// Each row was reported with its first obstacle only, and without those who hold what is
// missing.
func TestEveryObstacleIsNamedWithThoseWhoHoldWhatIsMissing(t *testing.T) {
	share := func(name, device, amounts string, pods ...string) string {
		return reserved(claim(name, "requests: ["+zoneRequest("zone", "cpu: 1")+"]",
			allocated("zone", "dra.numa", device, shareID, "consumedCapacity: {"+amounts+"}")), pods...)
	}
	gpu := func(name, device string, pods ...string) string {
		return reserved(claim(name, gpuRequest, allocated("gpu", "dra.numa", device)), pods...)
	}
	running := func(name, cpu string) string {
		return podWith(name, "nodeName: n1, containers: ["+container("main", "cpu: "+cpu)+"]")
	}
	four := zonedNode("n1", []zone{{4, 1, "8Gi"}, {4, 1, "8Gi"}})
	const numaNode = "constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]"
	for name, row := range map[string]struct {
		manifests []string
		devices   string
		pod       string // further fields of the pod
		want      []string
	}{
		"the node's own cpu, and its zones": {
			[]string{four, running("a", "500m"), running("b", "2"), running("idle", "0"), share("held", "numa-1", `cpu: "1"`, "b")},
			"requests: [" + zoneRequest("zone", "cpu: 6") + "]", "containers: [" + container("main", "cpu: 6") + "]",
			[]string{
				"node: the pod requests cpu 6, but only 5500m of 8 are free",
				"  pod default/b takes 2 cpu",
				"  pod default/a takes 500m cpu",
				"capacity: request zone: asks for 6 cpu of one device: numa-0 has 4, numa-1 has 3 of 4 left",
				"  pod default/b holds 1 cpu of numa-1 through claim default/held",
			},
		},
		"different capacities of different devices": {
			[]string{
				four,
				share("cpus", "numa-0", `cpu: "3"`, "a", "b"),
				share("more", "numa-0", `cpu: "1"`),
				share("memory", "numa-1", `memory: 8Gi`, "c"),
			},
			"requests: [" + zoneRequest("zone", "cpu: 2, memory: 1Gi") + "]", "",
			[]string{
				"capacity: request zone: asks for 2 cpu of one device: numa-0 has 0 of 4 left",
				"  pods default/a, default/b hold 3 cpu of numa-0 through claim default/cpus",
				"  claim default/more holds 1 cpu of numa-0, and no pod uses the claim",
				"capacity: request zone: asks for 1Gi memory of one device: numa-1 has 0 of 8Gi left",
				"  pod default/c holds 8Gi memory of numa-1 through claim default/memory",
			},
		},
		"a device that lacks a capacity which others have": {
			[]string{
				slice("d", "", "{name: m, allowMultipleAllocations: true, capacity: {memory: {value: 4}}}", "{name: c, allowMultipleAllocations: true, capacity: {cpu: {value: 4}}}"),
				nodeWith("n1", "", ""),
			},
			"requests: [" + requestOf("r", "d", ", capacity: {requests: {cpu: 8}}") + "]", "",
			[]string{"capacity: request r: asks for 8 cpu of one device: m has 0, c has 4"},
		},
		"each device for another reason": {
			[]string{
				slice("d", "", "{name: tainted, taints: [{key: a, value: b, effect: NoSchedule}], capacity: {watts: {value: 9}}}",
					"{name: used, capacity: {watts: {value: 9}}}", "{name: small, capacity: {watts: {value: 1}}}"),
				nodeWith("n1", "", ""),
				reserved(claim("held", "requests: ["+requestOf("r", "d", "")+"]", allocated("r", "d", "used")), "a"),
			},
			"requests: [" + requestOf("r", "d", ", capacity: {requests: {watts: 5}}") + "]", "",
			[]string{
				"capacity: request r: asks for 5 watts of one device: small has 1",
				"taint: request r: the request does not tolerate these taints: tainted has a=b:NoSchedule",
				"inUse: request r: used is in use by other claims",
				"  pod default/a holds used through claim default/held",
			},
		},
		"all requests": {
			[]string{gpuNode("n1", 1), gpu("held", "gpu-0", "a")},
			"requests: [" + zoneRequest("zone", "cpu: 9") + "," + requestOf("gpu", "gpu.dra.numa", "") + "]", "",
			[]string{
				"capacity: request zone: asks for 9 cpu of one device, rounded up to 10: numa-0 has 8",
				"inUse: request gpu: gpu-0 is in use by other claims",
				"  pod default/a holds gpu-0 through claim default/held",
			},
		},
		"a constraint that a held device could meet": {
			[]string{
				zonedNode("n1", []zone{{4, 1, "8Gi"}, {4, 1, "8Gi"}}, wholeDevice("gpu-0", 0, "pci0000:00"), wholeDevice("gpu-1", 1, "pci0000:00")),
				gpu("held", "gpu-1", "a"), share("cpus", "numa-0", `cpu: "3"`, "b"),
			},
			"requests: [" + zoneRequest("zone", "cpu: 2") + "," + requestOf("gpu", "gpu.dra.numa", "") + "], " + numaNode, "",
			[]string{
				"constraint: request zone: no value of resource.kubernetes.io/numaNode has enough devices for all requests that must match: " +
					"zone finds 1 on numa-1; gpu finds 0 on gpu-0",
				"capacity: request zone: asks for 2 cpu of one device: numa-0 has 1 of 4 left",
				"  pod default/b holds 3 cpu of numa-0 through claim default/cpus",
				"inUse: request gpu: gpu-1 is in use by other claims",
				"  pod default/a holds gpu-1 through claim default/held",
			},
		},
		"all alternatives": {
			[]string{four},
			"requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.dra.numa}, {name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 5}}}]}]", "",
			[]string{
				"capacity: no alternative of request r fits; the closest one is request r/b: asks for 5 cpu of one device: numa-0 has 4, numa-1 has 4",
				"class: another alternative is request r/a: 2 devices are not of class gpu.dra.numa",
			},
		},
		"all devices of none": {
			[]string{four},
			"requests: [" + requestOf("gpu", "gpu.dra.numa", ", allocationMode: All") + "]", "",
			[]string{"class: request gpu: 2 devices are not of class gpu.dra.numa"},
		},
		"the node": {
			[]string{nodeWith("n1", "unschedulable: true, taints: [{key: a, effect: NoSchedule}, {key: b, effect: NoExecute}, {key: c, effect: PreferNoSchedule}]", "cpu: 4, memory: 1Gi, pods: 0")},
			"requests: [" + zoneRequest("zone", "cpu: 9") + "]",
			"nodeSelector: {x: z}, containers: [" + container("main", "cpu: 5, memory: 2Gi") + "]",
			[]string{
				"node: the node is cordoned: spec.unschedulable is true",
				"node: the pod does not tolerate the node's taint a:NoSchedule",
				"node: the pod does not tolerate the node's taint b:NoExecute",
				"node: the node does not match the pod's node selector or affinity",
				"node: the node already runs its maximum of 0 pods",
				"node: the pod requests cpu 5, but the node has 4",
				"node: the pod requests memory 2Gi, but the node has 1Gi",
				"driver: request zone: the node has no devices",
			},
		},
		"the node, and requests that do not fit together": {
			[]string{cordoned(zonedNode("n1", []zone{{8, 1, "8Gi"}}))},
			"requests: [" + zoneRequest("a", "cpu: 5") + "," + zoneRequest("b", "cpu: 5") + "]", "",
			[]string{
				"node: the node is cordoned: spec.unschedulable is true",
				"together: claim devices: each request fits alone, but not all of them together: a wants 1 device of zone.dra.numa, 5 cpu; b wants 1 device of zone.dra.numa, 5 cpu",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			more := row.pod
			if !strings.Contains(more, "containers:") {
				more = "containers: [{name: main}]"
			}
			pod := template("p", row.devices) + podWith("p", "resourceClaims: [{name: devices, resourceClaimTemplateName: p}], "+more)
			node := explain(t, append(row.manifests, zoneClass, gpuClass, pod)...).Nodes[0]
			if diff := cmp.Diff(row.want, obstacles(node)); diff != "" {
				t.Errorf("obstacles (-want +got):\n%s", diff)
			}
			if first := node.Obstacles[0]; node.Sentence != first.Sentence || node.Blocks != first.Stage {
				t.Errorf("the node says %s, %s, want its first obstacle", node.Blocks, node.Sentence)
			}
		})
	}
}

// cordoned is the node with spec.unschedulable.
func cordoned(node string) string {
	return strings.Replace(node, "status: {allocatable", "spec: {unschedulable: true}\nstatus: {allocatable", 1)
}

// A driver that is missing on a control plane node is no news.
func TestHintsAreNotAboutDriversOfNodesThatRefuseThePod(t *testing.T) {
	e := explain(t, zoneClass, nodeWith("n1", "unschedulable: true", "cpu: 4"), claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 2")+"]"))
	if len(e.Hints) != 0 || e.Nodes[0].Obstacles[1].Hint == "" {
		t.Errorf("hints are %q, obstacles %+v", e.Hints, e.Nodes[0].Obstacles)
	}
}

// Holders that wait for a node themselves are marked.
func TestHoldersThatAreAssumedAreMarked(t *testing.T) {
	two := "requests: [" + zoneRequest("zone", "cpu: 6") + "]"
	s := read(t, zoneClass, zonedNode("n1", []zone{{8, 1, "8Gi"}}),
		template("t", two)+podWith("a", "resourceClaims: [{name: c, resourceClaimTemplateName: t}], containers: ["+container("main", "cpu: 6")+"]"),
		template("u", two)+podWith("p", "resourceClaims: [{name: c, resourceClaimTemplateName: u}], containers: ["+container("main", "cpu: 6")+"]"))
	c := cluster(t, s, "")
	if _, err := c.Run(t.Context(), s.Waiting()[:1], Options{}); err != nil {
		t.Fatal(err)
	}
	e, err := c.ExplainPod(t.Context(), s.Pod("default", "p"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"node: the pod requests cpu 6, but only 2 of 8 are free",
		"  pod default/a would take 6 cpu",
		"capacity: request zone: asks for 6 cpu of one device: numa-0 has 2 of 8 left",
		"  pod default/a would hold 6 cpu of numa-0 through claim default/a-c-",
	}
	got := obstacles(e.Nodes[0])
	got[3], _, _ = strings.Cut(got[3], "-c-")
	got[3] += "-c-"
	if diff := cmp.Diff(want, got); diff != "" || !e.Nodes[0].Obstacles[0].HeldBy[0].Assumed || !e.Nodes[0].Obstacles[1].HeldBy[0].Assumed {
		t.Errorf("obstacles (-want +got):\n%s", diff)
	}
}

// Nodes with different holders have the same answer.
func TestNodesThatDifferInHoldersAreOneGroup(t *testing.T) {
	held := func(node string) string {
		return strings.ReplaceAll(claim("on-"+node, "requests: ["+zoneRequest("zone", "cpu: 6")+"]",
			allocated("zone", "dra.numa", "numa-0", shareID, `consumedCapacity: {cpu: "6"}`)), "pool: n1", "pool: "+node)
	}
	e := explain(t, zoneClass, zonedNode("n1", []zone{{8, 1, "8Gi"}}), zonedNode("n2", []zone{{8, 1, "8Gi"}}), held("n1"), held("n2"),
		claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 6")+"]"))
	if groups := e.SameNodes(); len(groups) != 1 || groups[0][0].Obstacles[0].HeldBy[0].Claim != "default/on-n1" || groups[0][1].Obstacles[0].HeldBy[0].Claim != "default/on-n2" {
		t.Errorf("groups are %+v", groups)
	}
}
