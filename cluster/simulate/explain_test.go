package simulate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// explain is the answer for the pod p on the only node.
func explain(t *testing.T, manifests ...string) Explanation {
	t.Helper()
	s := read(t, manifests...)
	e, err := cluster(t, s, "").ExplainPod(t.Context(), s.Pod("default", "p"))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// slice is a pool of a driver on node n1. Each device is YAML in one line.
func slice(driver, more string, devices ...string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-slice}
spec: {driver: %[1]s, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [%[3]s] %[2]s}
---`, driver, more, strings.Join(devices, ", ")) + object.ClassText(driver, fmt.Sprintf("device.driver == %q", driver))
}

func requestOf(name, class, more string) string {
	return fmt.Sprintf("{name: %s, exactly: {deviceClassName: %s%s}}", name, class, more)
}

func TestFirstThingThatBlocksIsNamedWithWhatHelps(t *testing.T) {
	two := zonedNode("n1", []zone{{8, 1, "8Gi"}, {6, 2, "8Gi"}})
	for name, tc := range map[string]struct {
		manifests []string
		requests  string
		stage     funnel.Stage
		sentence  string
		hint      string
	}{
		"driver is not there": {
			manifests: []string{two, slice("gpu.example.com", "")},
			requests:  requestOf("gpu", "gpu.example.com", ""),
			stage:     funnel.StageDriver,
			sentence:  "request gpu: the node has no devices of driver gpu.example.com, which class gpu.example.com requires",
			hint:      "check that the driver runs there",
		},
		"pool is incomplete": {
			manifests: []string{strings.Replace(two, "resourceSliceCount: 1", "resourceSliceCount: 2", 1)},
			requests:  zoneRequest("zone", "cpu: 2"),
			stage:     funnel.StageDriver,
			sentence:  "pool n1 of driver dra.numa is incomplete: 1 of 2 ResourceSlices exist",
			hint:      "check that the driver publishes them",
		},
		"class": {
			manifests: []string{two, gpuClass},
			requests:  requestOf("gpu", "gpu.dra.numa", ""),
			stage:     funnel.StageClass,
			sentence:  "request gpu: 2 devices are not of class gpu.dra.numa",
			hint:      "no node has a device whose dra.numa/kind is gpu, which class gpu.dra.numa requires",
		},
		"a class with several conditions": {
			manifests: []string{two, object.ClassText("fast", `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone" && device.attributes["dra.numa"].socket > 0 && device.capacity["dra.numa"].cpu.isGreaterThan(quantity("4"))`)},
			requests:  requestOf("zone", "fast", ""),
			stage:     funnel.StageClass,
			sentence:  `request zone: 2 devices are not of class fast: device.attributes["dra.numa"].socket > 0 is not met: numa-0 has dra.numa/socket 0, numa-1 has dra.numa/socket 0`,
		},
		"a class with a condition on a capacity": {
			manifests: []string{two, object.ClassText("large", `device.driver == "dra.numa" && device.capacity["dra.numa"].cpu.isGreaterThan(quantity("8"))`)},
			requests:  requestOf("zone", "large", ""),
			stage:     funnel.StageClass,
			sentence:  `2 devices are not of class large: device.capacity["dra.numa"].cpu.isGreaterThan(quantity("8")) is not met: numa-0 has dra.numa/cpu 8, numa-1 has dra.numa/cpu 6`,
		},
		"a class that excludes a driver": {
			manifests: []string{two, object.ClassText("others", `!(device.driver == "dra.numa")`)},
			requests:  requestOf("r", "others", ""),
			stage:     funnel.StageClass,
			sentence:  "request r: 2 devices are not of class others",
		},
		"a class that excludes a kind": {
			manifests: []string{two, object.ClassText("others", `device.driver == "dra.numa" && !(device.attributes["dra.numa"].kind == "zone")`)},
			requests:  requestOf("r", "others", ""),
			stage:     funnel.StageClass,
			sentence:  `2 devices are not of class others: !(device.attributes["dra.numa"].kind == "zone") is not met: numa-0 has dra.numa/kind "zone", numa-1 has dra.numa/kind "zone"`,
		},
		"a class of either of two drivers": {
			manifests: []string{two, object.ClassText("either", `device.driver == "a" || device.driver == "b"`)},
			requests:  requestOf("r", "either", ""),
			stage:     funnel.StageClass,
			sentence:  "request r: 2 devices are not of class either",
		},
		"several conditions of a request": {
			manifests: []string{two},
			requests:  requestOf("zone", "zone.dra.numa", `, selectors: [{cel: {expression: 'device.attributes["dra.numa"].kind == "zone" && device.attributes["dra.numa"].?l3.orValue(-1) == 7'}}]`),
			stage:     funnel.StageSelector,
			sentence:  `the request's selectors reject 2 devices: device.attributes["dra.numa"].?l3.orValue(-1) == 7 is not met: numa-0 has no dra.numa/l3, numa-1 has no dra.numa/l3`,
		},
		"selector": {
			manifests: []string{two},
			requests:  requestOf("zone", "zone.dra.numa", `, selectors: [{cel: {expression: 'device.attributes["dra.numa"].socket == 7'}}]`),
			stage:     funnel.StageSelector,
			sentence:  `the request's selectors reject 2 devices: device.attributes["dra.numa"].socket == 7`,
		},
		"taint": {
			manifests: []string{
				slice("d", "", "{name: d1, taints: [{key: a, value: b, effect: NoSchedule}, {key: c, effect: None}]}"),
				nodeWith("n1", "", ""),
			},
			requests: requestOf("r", "d", ""),
			stage:    funnel.StageTaint,
			sentence: "request r: the request does not tolerate these taints: d1 has a=b:NoSchedule",
		},
		"taints, of which one is tolerated": {
			manifests: []string{
				slice("d", "", "{name: d1, taints: [{key: a, value: b, effect: NoSchedule}, {key: c, value: d, effect: NoExecute}, {key: e, effect: None}]}"),
				nodeWith("n1", "", ""),
			},
			requests: requestOf("r", "d", ", tolerations: [{key: a, operator: Exists}]"),
			stage:    funnel.StageTaint,
			sentence: "request r: the request does not tolerate these taints: d1 has c=d:NoExecute",
		},
		"capacity without a default": {
			manifests: []string{
				slice("d", "", "{name: d1, allowMultipleAllocations: true, capacity: {watts: {value: 5}}}"),
				nodeWith("n1", "", ""),
				claim("held", "requests: ["+requestOf("r", "d", "")+"]", allocated("r", "d", "d1", shareID, `consumedCapacity: {watts: "1"}`)),
			},
			requests: requestOf("r", "d", ""),
			stage:    funnel.StageCapacity,
			sentence: "the request does not name capacity watts, so it takes 5 of one device: d1 has 4 of 5 left",
			hint:     "name watts in the request's capacity",
		},
		"count on shared devices": {
			manifests: []string{two},
			requests:  requestOf("zone", "zone.dra.numa", ", count: 3, capacity: {requests: {cpu: 1}}"),
			stage:     funnel.StageDriver,
			sentence:  "request zone: 3 devices wanted, 2 left",
			hint:      "count: 3 asks for 3 different devices; to get more of one device, ask for more of its capacity",
		},
		"requests together": {
			manifests: []string{zonedNode("n1", []zone{{8, 1, "8Gi"}})},
			requests:  zoneRequest("a", "cpu: 5") + "," + zoneRequest("b", "cpu: 5"),
			stage:     funnel.StageTogether,
			sentence:  "claim devices: each request fits alone, but not all of them together",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := claimingPod("p", "requests: ["+tc.requests+"]")
			expectBlocked(t, explain(t, append(tc.manifests, zoneClass, pod)...), tc.stage, tc.sentence, tc.hint)
		})
	}
}

// expectBlocked checks what rules out the only node, what is said about it, and what
// helps.
func expectBlocked(t *testing.T, e Explanation, stage funnel.Stage, sentence, hint string) {
	t.Helper()
	got := e.Nodes[0]
	if got.Blocks != stage || !strings.Contains(got.Sentence, sentence) || !strings.Contains(got.Hint, hint) || (hint == "") != (got.Hint == "") {
		t.Errorf("blocked by %s: %s\nhint: %s\nwant %s: %s\nhint: %s", got.Blocks, got.Sentence, got.Hint, stage, sentence, hint)
	}
	if got.Hint != "" && (len(e.Hints) == 0 || e.Hints[0] != got.Hint) {
		t.Errorf("hints of the pod are %q", e.Hints)
	}
}

func TestCapacityThatBlocksIsNamedWithWhatHelps(t *testing.T) {
	two := zonedNode("n1", []zone{{8, 1, "8Gi"}, {6, 2, "8Gi"}})
	for capacity, row := range map[string]struct{ node, sentence, hint string }{
		"cpu: 5": {
			zonedNode("n1", []zone{{5, 2, "8Gi"}}),
			"asks for 5 cpu of one device, rounded up to 6: numa-0 has 5",
			"5 would fit, but the scheduler rounds cpu up to 6: ask for a multiple of the step",
		},
		"cpu: 2000": {
			zonedNode("n1", []zone{{1000, 1, "8Gi"}}),
			"asks for 2000 cpu of one device: numa-0 has 1000",
			"",
		},
		"cpu: 7": {
			strings.ReplaceAll(two, `min: "0", step: "1"`, `min: "0", step: "1", max: "3"`),
			"asks for 7 cpu of one device: numa-0 allows at most 3 per request",
			"a request gets its cpu from one device",
		},
		"cpu: 10": {
			two,
			"request zone: asks for 10 cpu of one device: numa-0 has 8, numa-1 has 6",
			"a request gets its cpu from one device, and no device has enough: split the request into several",
		},
		"cpu: 100":        {two, "request zone: asks for 100 cpu of one device", ""},
		"dra.numa/cpu: 2": {two, `no device has a capacity named "dra.numa/cpu"`, "write cpu instead of dra.numa/cpu, without the driver's prefix"},
		"CPUs: 2":         {two, `no device has a capacity named "CPUs"`, "write cpu instead of CPUs: a request must spell"},
		"watts: 2":        {two, `no device has a capacity named "watts"`, "the devices have these capacities: cpu, memory"},
	} {
		t.Run(capacity, func(t *testing.T) {
			pod := claimingPod("p", "requests: ["+zoneRequest("zone", capacity)+"]")
			expectBlocked(t, explain(t, row.node, zoneClass, pod), funnel.StageCapacity, row.sentence, row.hint)
		})
	}
}

// A request for all devices does not want those that are too small even if nobody holds any of them.
func TestRequestForAllDevicesDoesNotWantTheSmallOnes(t *testing.T) {
	node := zonedNode("n1", []zone{{2, 1, "8Gi"}, {4, 1, "8Gi"}, {4, 1, "8Gi"}, {4, 1, "8Gi"}}, "{name: numa-9, allowMultipleAllocations: true, attributes: {kind: {string: zone}}}")
	pod := claimingPod("p", "requests: ["+requestOf("zone", "zone.dra.numa", ", allocationMode: All, capacity: {requests: {cpu: 4}}")+"]")
	fits := explain(t, node, zoneClass, pod)
	if got := fits.Nodes[0].Requests[0]; fits.Node != "n1" || got.Wanted != 3 || got.Blocks != "" || got.Left.InUse != 5 || got.Left.Capacity != 3 {
		t.Errorf("%s: %+v", fits.Sentence, got)
	}
	held := claim("held", "requests: ["+zoneRequest("zone", "cpu: 2")+"]", allocated("zone", "dra.numa", "numa-1", shareID, `consumedCapacity: {cpu: "2"}`))
	expectBlocked(t, explain(t, node, zoneClass, held, pod), funnel.StageCapacity, "request zone: 3 devices wanted, 2 left: asks for 4 cpu of one device: numa-1 has 2 of 4 left", "")
	tainted := strings.Replace(node, "  - name: numa-1", "  - name: numa-1\n    taints: [{key: a, effect: NoSchedule}]", 1)
	expectBlocked(t, explain(t, tainted, zoneClass, pod), funnel.StageTaint, "request zone: 3 devices wanted, 2 left: the request does not tolerate these taints: numa-1 has a=:NoSchedule", "")
	expectBlocked(t, explain(t, node, zoneClass, strings.Replace(pod, "cpu: 4", "cpu: 6", 1)), funnel.StageCapacity,
		"request zone: asks for 6 cpu of one device: numa-0 has 2, numa-1 has 4, numa-2 has 4, numa-3 has 4", "")
}

// A zone without CPUs is no reason to say that no device has any.
func TestCapacityThatOneDeviceLacksIsNotMissing(t *testing.T) {
	far := "{name: numa-9, allowMultipleAllocations: true, attributes: {kind: {string: zone}}, capacity: {memory: {value: 1Gi, requestPolicy: {default: '0', validRange: {min: '0', step: 1Mi}}}}}"
	e := explain(t, zonedNode("n1", []zone{{4, 1, "8Gi"}}, far), zoneClass, claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 2, memory: 9Gi")+"]"))
	if got := obstacles(e.Nodes[0]); len(got) != 1 || got[0] != "capacity: request zone: asks for 9Gi memory of one device: numa-0 has 8Gi, numa-9 has 1Gi" {
		t.Errorf("obstacles are\n%s", strings.Join(got, "\n"))
	}
}

// With zoneBy: l3, the zones of level-3 caches have the CPUs, and those of NUMA nodes the
// memory.
func TestCapacitiesOfDifferentDevicesNeedSeveralRequests(t *testing.T) {
	const attributes = "allowMultipleAllocations: true, attributes: {kind: {string: zone}, resource.kubernetes.io/numaNode: {int: 0}}"
	const amount = "requestPolicy: {default: '0', validRange: {min: '0', step: '1'}}"
	node := zonedNode("n1", nil,
		"{name: l3-0, "+attributes+", capacity: {cpu: {value: 4, "+amount+"}}}", "{name: l3-1, "+attributes+", capacity: {cpu: {value: 4, "+amount+"}}}",
		"{name: numa-0, "+attributes+", capacity: {memory: {value: 8Gi, "+amount+"}, hugepages2Mi: {value: 1Gi, "+amount+"}}}")
	const requests = "write 2 requests, {name: zone-cpu, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}}, " +
		"{name: zone-memory, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {memory: 1Gi}}}}, " +
		"with the constraint {requests: [zone-cpu, zone-memory], matchAttribute: resource.kubernetes.io/numaNode}"
	blocked := func(capacity string) Explanation {
		return explain(t, node, zoneClass, claimingPod("p", "requests: ["+zoneRequest("zone", capacity)+"]"))
	}
	expectBlocked(t, blocked("cpu: 4, memory: 1Gi"), funnel.StageCapacity, "request zone: no device has both cpu and memory: l3-0 has cpu, numa-0 has memory", requests)
	expectBlocked(t, blocked("cpu: 4, memory: 1Gi, hugepages2Mi: 2Mi"), funnel.StageCapacity,
		"request zone: no device has all of cpu, hugepages2Mi, memory: numa-0 has hugepages2Mi and memory, l3-0 has cpu", "write 2 requests, {name: zone-hugepages2mi, ")
	e := blocked("cpu: 6, memory: 1Gi")
	if got := obstacles(e.Nodes[0]); len(got) != 2 || got[1] != "capacity: request zone: asks for 6 cpu of one device: l3-0 has 4, l3-1 has 4" {
		t.Errorf("obstacles are\n%s", strings.Join(got, "\n"))
	}
	// What the hint says fits.
	fits := explain(t, node, zoneClass, claimingPod("p", "requests: ["+zoneRequest("zone-cpu", "cpu: 4")+", "+zoneRequest("zone-memory", "memory: 1Gi")+
		"], constraints: [{requests: [zone-cpu, zone-memory], matchAttribute: resource.kubernetes.io/numaNode}]"))
	if fits.Node != "n1" {
		t.Errorf("the two requests: %s", fits.Sentence)
	}
}

// The NIC and the GPU have no attribute in common. A hint that names the other's attribute
// leads to the next constraint that cannot be met, and back.
func TestRequestsWithoutACommonAttributeMeetInTheZone(t *testing.T) {
	node := strings.ReplaceAll(zonedNode("n1", []zone{{8, 1, "8Gi"}}), "resource.kubernetes.io/numaNode: {int: 0}", "resource.kubernetes.io/numaNode: {int: 0}, dra.net/numaNode: {int: 0}")
	manifests := []string{
		node, zoneClass, slice("nic", "", "{name: eth0, attributes: {dra.net/numaNode: {int: 0}}}"),
		slice("gpu", "", "{name: gpu0, attributes: {resource.kubernetes.io/numaNode: {int: 0}}}"),
	}
	requests := "requests: [" + requestOf("gpu", "gpu", "") + "," + requestOf("nic", "nic", "") + "," + zoneRequest("zone", "cpu: 1") + "]"
	const constraints = "{requests: [zone, nic], matchAttribute: dra.net/numaNode} and {requests: [zone, gpu], matchAttribute: resource.kubernetes.io/numaNode}"
	for _, attribute := range []string{"resource.kubernetes.io/numaNode", "dra.net/numaNode"} {
		e := explain(t, append(manifests, claimingPod("p", requests+", constraints: [{matchAttribute: "+attribute+"}]"))...)
		expectBlocked(t, e, funnel.StageConstraint, "has the attribute "+attribute+", which a constraint matches",
			"zone has one in common with each: write 2 constraints, "+constraints)
	}
	if e := explain(t, append(manifests, claimingPod("p", requests+", constraints: ["+strings.Replace(constraints, " and ", ", ", 1)+"]"))...); e.Node != "n1" {
		t.Errorf("with the two constraints: %s", e.Sentence)
	}
	e := explain(t, append(manifests, claimingPod("p", "requests: ["+requestOf("gpu", "gpu", "")+","+requestOf("nic", "nic", "")+"], constraints: [{matchAttribute: dra.net/numaNode}]"))...)
	expectBlocked(t, e, funnel.StageConstraint, "no device of request gpu has the attribute dra.net/numaNode",
		"gpu has resource.kubernetes.io/numaNode, nic has dra.net/numaNode; add a request for a device that has them, such as a zone")
}

func TestConstraintThatBlocksIsNamedWithWhatHelps(t *testing.T) {
	for attributes, row := range map[string]struct{ sentence, hint string }{
		"dra.net/numaNode: {int: 0}": {
			"no device of request nic has the attribute resource.kubernetes.io/numaNode, which a constraint matches",
			"zone has resource.kubernetes.io/numaNode, nic has dra.net/numaNode; name dra.net/numaNode in numaNodeKeys of the NodeConfig",
		},
		"resource.kubernetes.io/numaNode: {int: 5}": {
			"no value of resource.kubernetes.io/numaNode has enough devices for all requests that must match: " +
				"zone finds 0 on numa-0, 1 on numa-1; nic finds 5 on d1",
			"NUMA node 5 of request nic has no CPUs: take request zone out of the constraint, and select its zone by " +
				`device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == 0 (numa-0) or ` +
				`device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == 1 (numa-1)`,
		},
	} {
		t.Run(attributes, func(t *testing.T) {
			pod := claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 1")+","+requestOf("nic", "d", "")+"], "+
				"constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]")
			e := explain(t, zonedNode("n1", []zone{{8, 1, "8Gi"}, {6, 2, "8Gi"}}), slice("d", "", "{name: d1, attributes: {"+attributes+"}}"), zoneClass, pod)
			expectBlocked(t, e, funnel.StageConstraint, row.sentence, row.hint)
		})
	}
}

// The zone lacks the attribute. It can have its NUMA node under another name, and nothing else.
func TestZoneThatLacksTheAttributeOfAConstraintMayHaveIt(t *testing.T) {
	for attribute, hint := range map[string]string{
		"numaNode": "gpu has gpu.x.com/numaNode; name gpu.x.com/numaNode in numaNodeKeys of the NodeConfig, so that the devices of dra.numa have it",
		"socket":   "zone has dra.numa/socket, gpu has gpu.x.com/socket; add a request for a device that has them",
	} {
		e := explain(t, zonedNode("n1", []zone{{8, 1, "8Gi"}}), slice("gpu.x.com", "", "{name: gpu0, attributes: {"+attribute+": {int: 0}}}"), zoneClass,
			claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 1")+","+requestOf("gpu", "gpu.x.com", "")+"], constraints: [{matchAttribute: gpu.x.com/"+attribute+"}]"))
		expectBlocked(t, e, funnel.StageConstraint, "no device of request zone has the attribute gpu.x.com/"+attribute, hint)
	}
}

// An alternative of which no device is left has nothing to say about an attribute.
func TestConstraintOnAlternativesWithoutDevicesIsExplained(t *testing.T) {
	on := func(socket int) string {
		return fmt.Sprintf(`selectors: [{cel: {expression: 'device.attributes["dra.numa"].socket == %d'}}]`, socket)
	}
	pod := claimingPod("p", "requests: [{name: z, firstAvailable: [{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}, "+on(0)+"}, "+
		"{name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 6}}}]}, "+
		requestOf("yy", "zone.dra.numa", ", capacity: {requests: {cpu: 4}}, "+on(1))+"], constraints: [{matchAttribute: dra.numa/socket}]")
	e := explain(t, zonedNode("n1", []zone{{4, 1, "8Gi"}, {4, 1, "8Gi"}, {4, 1, "8Gi"}, {4, 1, "8Gi"}}), zoneClass, pod)
	expectBlocked(t, e, funnel.StageConstraint, "no value of dra.numa/socket has enough devices for all requests that must match: "+
		"z/a finds 0 on 2 devices; yy finds 1 on 2 devices", "")
	if strings.Contains(fmt.Sprint(e), "which a constraint matches") {
		t.Errorf("an alternative lacks the attribute: %+v", e.Nodes[0].Obstacles)
	}
}

// A list matches what has one of its elements, if the scheduler knows lists.
func TestConstraintOnListsIsExplained(t *testing.T) {
	const socket = "{name: socket-0, allowMultipleAllocations: true, attributes: {kind: {string: zone}, resource.kubernetes.io/numaNode: {ints: [0, 1]}}, capacity: {cpu: {value: 8}, memory: {value: 8Gi}}}"
	const near = `device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == [0, 1]`
	request := "requests: [" + zoneRequest("zone", "cpu: 1") + "," + requestOf("gpu", "d", "") + "]"
	explainWith := func(gates, pod string, numaNode int) Explanation {
		s := read(t, zonedNode("n1", nil, socket), zoneClass,
			slice("d", "", fmt.Sprintf("{name: gpu, attributes: {resource.kubernetes.io/numaNode: {int: %d}}}", numaNode)), pod)
		e, err := cluster(t, s, gates).ExplainPod(t.Context(), s.Pod("default", "p"))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	matched := claimingPod("p", request+", constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]")
	if e := explainWith("DRAListTypeAttributes=true", matched, 1); e.Node != "n1" {
		t.Errorf("with the gate: %s", e.Sentence)
	}
	expectBlocked(t, explainWith("", matched, 1), funnel.StageConstraint, "zone finds [0, 1] on socket-0; gpu finds 1 on gpu", "")
	expectBlocked(t, explainWith("DRAListTypeAttributes=true", matched, 2), funnel.StageConstraint, "zone finds 0 on socket-0, 1 on socket-0; gpu finds 2 on gpu",
		"select its zone by "+near+" (socket-0)")
	if e := explainWith("", claimingPod("p", strings.Replace(request, "exactly: {", "exactly: {selectors: [{cel: {expression: '"+near+"'}}], ", 1)), 2); e.Node != "n1" {
		t.Errorf("with the hint's selector: %s", e.Sentence)
	}
}

// A GPU may say the NUMA node of its own memory, which has no CPUs.
func TestZoneNearMemoryWithoutCPUsIsNamed(t *testing.T) {
	const far = "{name: numa-4, allowMultipleAllocations: true, attributes: {kind: {string: zone}, resource.kubernetes.io/numaNode: {int: 4}, nearest: {int: 1}}, capacity: {memory: {value: 8Gi}}}"
	request := "requests: [" + zoneRequest("zone", "cpu: 1") + "," + requestOf("gpu", "d", "") + "], constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]"
	manifests := func(node int, more string) []string {
		return []string{
			zonedNode("n1", []zone{{8, 1, "8Gi"}, {6, 2, "8Gi"}}, far), zoneClass,
			slice("d", "", fmt.Sprintf("{name: gpu, attributes: {resource.kubernetes.io/numaNode: {int: %d}}}", node)), claimingPod("p", strings.Replace(request, "cpu: 1", more, 1)),
		}
	}
	expectBlocked(t, explain(t, manifests(4, "cpu: 1")...), funnel.StageConstraint, "zone finds 0 on numa-0, 1 on numa-1; gpu finds 4 on gpu",
		`select its zone by device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == 1 (numa-1)`)
	// NUMA node 0 has CPUs, but too few.
	expectBlocked(t, explain(t, manifests(1, "cpu: 8")...), funnel.StageConstraint, "zone finds 0 on numa-0; gpu finds 1 on gpu", "")
}

func TestCountersOfAPoolAreExplained(t *testing.T) {
	devices := slice("d", "",
		"{name: d1, consumesCounters: [{counterSet: card, counters: {slots: {value: 3}}}]}",
		"{name: d2, consumesCounters: [{counterSet: card, counters: {slots: {value: 2}}}]}",
	)
	counters := strings.NewReplacer("{name: d-slice}", "{name: d-counters}", "devices: []", "sharedCounters: [{name: card, counters: {slots: {value: 4}}}]").Replace(slice("d", ""))
	counters, _, _ = strings.Cut(counters, "---")
	held := claim("held", "requests: ["+requestOf("r", "d", "")+"]", allocated("r", "d", "d1"))
	two := strings.NewReplacer("resourceSliceCount: 1", "resourceSliceCount: 2")
	e := explain(t, two.Replace(devices), two.Replace(counters), "---", held, nodeWith("n1", "", ""), claimingPod("p", "requests: ["+requestOf("r", "d", "")+"]"))
	const want = "request r: too little of the pool's counter card/slots is left: d2 needs 2, 1 left"
	if got := e.Nodes[0]; got.Blocks != funnel.StageCapacity || got.Sentence != want || got.Requests[0].Left.InUse != 1 {
		t.Errorf("blocked by %s: %s (%+v), want %s", got.Blocks, got.Sentence, got.Requests, want)
	}
}

// The scheduler allocates no device of a pool that is invalid, and says no more than that there is one.
func TestInvalidPoolIsExplained(t *testing.T) {
	const set, wrong = "{name: card, counters: {slots: {value: 4}}}", "pool n1 of driver d is invalid: "
	consumes := func(set, counter string) string {
		return "{name: d1, consumesCounters: [{counterSet: " + set + ", counters: {" + counter + ": {value: 1}}}]}"
	}
	pool := func(devices, sets string) string {
		counters := strings.NewReplacer("{name: d-slice}", "{name: d-counters}", "devices: []", "sharedCounters: ["+sets+"]").Replace(slice("d", ""))
		counters, _, _ = strings.Cut(counters, "---")
		return strings.ReplaceAll(slice("d", "", devices)+"\n---"+counters+"\n---", "resourceSliceCount: 1", "resourceSliceCount: 2")
	}
	for name, row := range map[string]struct{ slices, want string }{
		"one name twice":  {slice("d", "", "{name: d1}", "{name: d2}", "{name: d1}"), wrong + "two devices are called d1"},
		"one set twice":   {pool(consumes("card", "slots"), set+", "+set), wrong + "two counter sets are called card"},
		"no such set":     {pool(consumes("gone", "slots"), set), wrong + "device d1 consumes counters of gone, and there is no such counter set"},
		"no such counter": {pool(consumes("card", "gone"), set), wrong + "device d1 consumes the counter gone of card, which has no such counter"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := claimingPod("p", "requests: ["+requestOf("r", "d", "")+"]")
			const hint = "the scheduler allocates no device of an invalid pool: the driver has to publish other ResourceSlices"
			expectBlocked(t, explain(t, row.slices, nodeWith("n1", "", ""), pod), funnel.StageDriver, row.want, hint)
			// It does not hide what is in the way of other drivers.
			zones := zonedNode("n1", []zone{{8, 1, "8Gi"}})
			two := claimingPod("p", "requests: ["+zoneRequest("a", "cpu: 5")+", "+zoneRequest("b", "cpu: 5")+"]")
			expectBlocked(t, explain(t, row.slices, zones, zoneClass, two), funnel.StageTogether, "each request fits alone, but not all of them together", "")
			wantReason(t, run(t, row.slices, zones, zoneClass, two), "p", "each request fits alone, but not all of them together")
		})
	}
}

// A pool of several nodes may have a device of the same name on each.
func TestPoolWithOneNameOnEachNodeIsValid(t *testing.T) {
	two := strings.ReplaceAll(slice("d", "", "{name: d1}"), "resourceSliceCount: 1", "resourceSliceCount: 2")
	other, _, _ := strings.Cut(strings.NewReplacer("name: d-slice", "name: other", "nodeName: n1", "nodeName: n2").Replace(two), "---")
	if e := explain(t, two, "---", other, "---", nodeWith("n1", "", ""), nodeWith("n2", "", ""), claimingPod("p", "requests: ["+requestOf("r", "d", "")+"]")); e.Node != "n1" {
		t.Errorf("%s: %+v", e.Sentence, e.Nodes)
	}
}

func TestDeviceWithBindingConditionsNeedsTheGate(t *testing.T) {
	s := read(t, slice("d", "", "{name: d1, bindingConditions: [Attached], bindingFailureConditions: [Broken]}"), nodeWith("n1", "", ""), claimingPod("p", "requests: ["+requestOf("r", "d", "")+"]"))
	e, err := cluster(t, s, "DRADeviceBindingConditions=false").ExplainPod(t.Context(), s.Pod("default", "p"))
	if err != nil {
		t.Fatal(err)
	}
	expectBlocked(t, e, funnel.StageCapacity, "request r: the devices have binding conditions, and the feature gate DRADeviceBindingConditions is off", "")
	s = read(t, slice("d", "", "{name: d1, bindingConditions: [Attached], bindingFailureConditions: [Broken]}", "{name: d2}"), nodeWith("n1", "", ""),
		claimingPod("p", "requests: ["+requestOf("r", "d", ", allocationMode: All")+"]"))
	e, err = cluster(t, s, "DRADeviceBindingConditions=false").ExplainPod(t.Context(), s.Pod("default", "p"))
	if err != nil || e.Node != "n1" || e.Nodes[0].Requests[0].Wanted != 1 || e.Nodes[0].Requests[0].Blocks != "" {
		t.Errorf("all devices: %s %+v, %v", e.Sentence, e.Nodes, err)
	}
}

// The pod fits, and a hint says when the scheduler tries again.
func TestAPodThatTheSchedulerDoesNotLookAt(t *testing.T) {
	for status, hints := range map[string]int{
		"": 0,
		"status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}":   1,
		"status: {conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}": 0,
	} {
		pod := strings.TrimSuffix(claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 6")+"]"), "---") + status + "\n---"
		e := explain(t, zoneClass, zonedNode("n1", []zone{{8, 1, "8Gi"}}), pod)
		if e.Node != "n1" || len(e.Hints) != hints || hints > 0 && !strings.HasPrefix(e.Hints[0], "the scheduler rejected the pod at its last attempt") {
			t.Errorf("%s: node %s, hints %q", status, e.Node, e.Hints)
		}
	}
}

// A pod holds all its claims as long as it exists.
func TestClaimsOfInitContainersAddUp(t *testing.T) {
	pod := template("early", "requests: ["+zoneRequest("zone", "cpu: 6")+"]") + template("late", "requests: ["+zoneRequest("zone", "cpu: 6")+"]") +
		podWith("p", `resourceClaims: [{name: early, resourceClaimTemplateName: early}, {name: late, resourceClaimTemplateName: late}],
  initContainers: [{name: i, resources: {claims: [{name: early}]}}], containers: [{name: main, resources: {claims: [{name: late}]}}]`)
	e := explain(t, zoneClass, zonedNode("n1", []zone{{8, 1, "8Gi"}}), pod)
	if got := e.Nodes[0]; got.Blocks != funnel.StageTogether || got.Sentence != "the claims early, late fit alone, but not all of them together" ||
		!strings.Contains(got.Hint, "claims of its init containers in addition to its other claims") || len(e.Hints) != 1 {
		t.Errorf("blocked by %s: %s; hints %q", got.Blocks, got.Sentence, e.Hints)
	}
}

// Nobody waits for a selector that computes with endless amounts, in a claim or in its class.
func TestSelectorThatComputesForHoursIsNotTried(t *testing.T) {
	const endless = `quantity("` + object.EndlessAmount + `").isLessThan(quantity("1"))`
	devices := slice("gpu", "", "{name: gpu}")
	for name, row := range map[string]struct{ devices, request, want string }{
		"a claim":     {devices, requestOf("r", "gpu", ", selectors: [{cel: {expression: '"+endless+"'}}]"), `quantity("1e300000000") would take hours`},
		"a class":     {devices + "\n---" + object.ClassText("hours", endless), requestOf("r", "hours", ""), `quantity("1e300000000") would take hours`},
		"a made text": {devices, requestOf("r", "gpu", `, selectors: [{cel: {expression: 'quantity("1e3" + "00000000").isInteger()'}}]`), "could take hours"},
	} {
		s := read(t, row.devices, nodeWith("n1", "", ""), claimingPod("p", "requests: ["+row.request+"]"))
		placed, err := cluster(t, s, "").Place(t.Context(), s.Pod("default", "p"), Options{})
		if err != nil || placed.Aborted == nil || !strings.Contains(placed.Aborted.Error(), row.want) {
			t.Errorf("%s: %+v, %v, want %q", name, placed, err, row.want)
		}
		if e := explain(t, row.devices, nodeWith("n1", "", ""), claimingPod("p", "requests: ["+row.request+"]")); !strings.Contains(fmt.Sprint(e), row.want) {
			t.Errorf("%s is explained as %+v, want %q", name, e, row.want)
		}
	}
}

// The claim asks for many devices before the rare one. The scheduler gives up after ten
// seconds; the test does not wait for that.
func TestSearchThatTakesTooLongMakesTheSchedulerGiveUp(t *testing.T) {
	var devices []string
	for i := range 40 {
		devices = append(devices, fmt.Sprintf("{name: vf-%d, attributes: {resource.kubernetes.io/numaNode: {int: 0}}}", i))
	}
	for _, more := range []string{"", ", count: 2"} { // also where there are too few of the last anyway
		t.Run("gpu"+more, func(t *testing.T) {
			s := read(t, slice("vf", "", devices...), slice("gpu", "", "{name: gpu, attributes: {resource.kubernetes.io/numaNode: {int: 1}}}"), nodeWith("n1", "", ""),
				claimingPod("p", "requests: ["+requestOf("vfs", "vf", ", count: 8")+","+requestOf("gpu", "gpu", more)+"], constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]"))
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if _, err := cluster(t, s, "").Place(ctx, s.Pod("default", "p"), Options{}); err == nil {
				t.Error("the search came to an end")
			}
		})
	}
	abort := &AbortError{"default/p", "n1", fmt.Errorf("filter operation aborted: %w", context.DeadlineExceeded)}
	if hint := abort.Hint(); !strings.Contains(hint, "write requests for rare devices first") {
		t.Errorf("hint %q", hint)
	}
}
