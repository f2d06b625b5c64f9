package simulate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
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

// slice is a pool of a driver on node n1, its devices as YAML of one line each.
func slice(driver, more string, devices ...string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-slice}
spec: {driver: %[1]s, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}, devices: [%[3]s] %[2]s}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %[1]s}
spec: {selectors: [{cel: {expression: 'device.driver == "%[1]s"'}}]}
---`, driver, more, strings.Join(devices, ", "))
}

func requestOf(name, class, more string) string {
	return fmt.Sprintf("{name: %s, exactly: {deviceClassName: %s%s}}", name, class, more)
}

func TestFirstThingThatBlocksIsNamedWithWhatHelps(t *testing.T) {
	two := zonedNode("n1", []zone{{8, 1, "8Gi"}, {6, 2, "8Gi"}})
	const numaNode = "constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]"
	for name, tc := range map[string]struct {
		manifests []string
		requests  string
		stage     funnel.Stage
		sentence  string
		hint      string
	}{
		"driver is not there": {
			[]string{two, slice("gpu.example.com", "")},
			requestOf("gpu", "gpu.example.com", ""),
			funnel.StageDriver, "request gpu: the node has no devices of driver gpu.example.com, which class gpu.example.com wants", "does the driver run there?",
		},
		"pool is incomplete": {
			[]string{strings.Replace(two, "resourceSliceCount: 1", "resourceSliceCount: 2", 1)},
			zoneRequest("zone", "cpu: 2"),
			funnel.StageDriver, "pool n1 of driver dra.numa has 1 slices but says that it has 2", "does its driver publish them?",
		},
		"class": {
			[]string{two, gpuClass}, requestOf("gpu", "gpu.dra.numa", ""), funnel.StageClass, "request gpu: 2 devices are not of class gpu.dra.numa", "",
		},
		"selector": {
			[]string{two},
			requestOf("zone", "zone.dra.numa", `, selectors: [{cel: {expression: 'device.attributes["dra.numa"].socket == 7'}}]`),
			funnel.StageSelector, `2 devices are not selected by the request: device.attributes["dra.numa"].socket == 7`, "",
		},
		"taint": {
			[]string{slice("d", "", "{name: d1, taints: [{key: a, value: b, effect: NoSchedule}, {key: c, effect: None}]}"), nodeWith("n1", "", "")},
			requestOf("r", "d", ""),
			funnel.StageTaint, "request r: taints that the request does not tolerate: d1 has a=b:NoSchedule", "",
		},
		"capacity": {
			[]string{two},
			zoneRequest("zone", "cpu: 10"), funnel.StageCapacity, "request zone: 10 cpu asked: numa-0 has 8, numa-1 has 6",
			"a request gets its cpu from one device, and only several together have so much: split it into several requests",
		},
		"capacity that nothing has": {
			[]string{two}, zoneRequest("zone", "cpu: 100"), funnel.StageCapacity, "request zone: 100 cpu asked", "",
		},
		"rounding": {
			[]string{zonedNode("n1", []zone{{5, 2, "8Gi"}})},
			zoneRequest("zone", "cpu: 5"), funnel.StageCapacity,
			"5 cpu asked, which is rounded up to 6: numa-0 has 5", "5 would fit, but cpu comes in steps and is rounded up to 6: ask for a multiple of the step",
		},
		"driver's prefix": {
			[]string{two}, zoneRequest("zone", "dra.numa/cpu: 2"), funnel.StageCapacity, `no device has a capacity "dra.numa/cpu"`, "write cpu instead of dra.numa/cpu, without the driver's prefix",
		},
		"spelling": {
			[]string{two}, zoneRequest("zone", "CPUs: 2"), funnel.StageCapacity, `no device has a capacity "CPUs"`, "write cpu instead of CPUs: a request has to spell",
		},
		"no such capacity": {
			[]string{two}, zoneRequest("zone", "watts: 2"), funnel.StageCapacity, `no device has a capacity "watts"`, "the capacities there are: cpu, memory",
		},
		"maximum of a request": {
			[]string{strings.ReplaceAll(two, `min: "0", step: "1"`, `min: "0", step: "1", max: "3"`)},
			zoneRequest("zone", "cpu: 7"), funnel.StageCapacity,
			"7 cpu asked: numa-0 gives a request at most 3", "a request gets its cpu from one device",
		},
		"capacity without a default": {
			[]string{
				slice("d", "", "{name: d1, allowMultipleAllocations: true, capacity: {watts: {value: 5}}}"), nodeWith("n1", "", ""),
				claim("held", "requests: ["+requestOf("r", "d", "")+"]", `status: {allocation: {devices: {results: [{request: r, driver: d, pool: n1, device: d1, shareID: 00000000-0000-8000-8000-000000000000, consumedCapacity: {watts: "1"}}]}}}`),
			},
			requestOf("r", "d", ""), funnel.StageCapacity, "capacity watts, which the request does not name, is charged as 5: d1 has 4 of 5 left", "name watts in the request's capacity",
		},
		"count on shared devices": {
			[]string{two},
			requestOf("zone", "zone.dra.numa", ", count: 3, capacity: {requests: {cpu: 1}}"), funnel.StageDriver,
			"request zone: 3 devices wanted, 2 left", "count: 3 asks for as many different devices; for more of one device, ask for more of its capacity",
		},
		"attribute is missing": {
			[]string{two, slice("d", "", "{name: d1, attributes: {dra.net/numaNode: {int: 0}}}")},
			zoneRequest("zone", "cpu: 1") + "," + requestOf("nic", "d", ""),
			funnel.StageConstraint, "no device of request nic has the attribute resource.kubernetes.io/numaNode, which has to match", "they have dra.net/numaNode: match in an attribute that all devices have",
		},
		"values differ": {
			[]string{two, slice("d", "", "{name: d1, attributes: {resource.kubernetes.io/numaNode: {int: 5}}}")},
			zoneRequest("zone", "cpu: 1") + "," + requestOf("nic", "d", ""),
			funnel.StageConstraint, "no value of resource.kubernetes.io/numaNode suits all requests that have to match in it: zone finds 0 on 1 device, 1 on 1 device; nic finds 5 on 1 device", "",
		},
		"requests together": {
			[]string{zonedNode("n1", []zone{{8, 1, "8Gi"}})},
			zoneRequest("a", "cpu: 5") + "," + zoneRequest("b", "cpu: 5"), funnel.StageTogether,
			"claim devices: every request could be met alone, but not all together", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			devices := "requests: [" + tc.requests + "]"
			if tc.stage == funnel.StageConstraint {
				devices += ", " + numaNode
			}
			e := explain(t, append(tc.manifests, zoneClass, claimingPod("p", devices))...)
			got := e.Nodes[0]
			if got.Blocks != tc.stage || !strings.Contains(got.Sentence, tc.sentence) || !strings.Contains(got.Hint, tc.hint) || (tc.hint == "") != (got.Hint == "") {
				t.Errorf("blocked by %s: %s\nhint: %s\nwant %s: %s\nhint: %s", got.Blocks, got.Sentence, got.Hint, tc.stage, tc.sentence, tc.hint)
			}
			if got.Hint != "" && (len(e.Hints) == 0 || e.Hints[0] != got.Hint) {
				t.Errorf("hints of the pod are %q", e.Hints)
			}
		})
	}
}

func TestCountersOfAPoolAreExplained(t *testing.T) {
	devices := slice("d", "", "{name: d1, consumesCounters: [{counterSet: card, counters: {slots: {value: 3}}}]}", "{name: d2, consumesCounters: [{counterSet: card, counters: {slots: {value: 2}}}]}")
	counters := strings.NewReplacer("{name: d-slice}", "{name: d-counters}", "devices: []", "sharedCounters: [{name: card, counters: {slots: {value: 4}}}]").Replace(slice("d", ""))
	counters, _, _ = strings.Cut(counters, "---")
	held := claim("held", "requests: ["+requestOf("r", "d", "")+"]", "status: {allocation: {devices: {results: [{request: r, driver: d, pool: n1, device: d1}]}}}")
	two := strings.NewReplacer("resourceSliceCount: 1", "resourceSliceCount: 2")
	e := explain(t, two.Replace(devices), two.Replace(counters), "---", held, nodeWith("n1", "", ""), claimingPod("p", "requests: ["+requestOf("r", "d", "")+"]"))
	const want = "request r: counter card/slots of the pool: d2 has 1"
	if got := e.Nodes[0]; got.Blocks != funnel.StageCapacity || got.Sentence != want || got.Requests[0].Left.InUse != 1 {
		t.Errorf("blocked by %s: %s (%+v), want %s", got.Blocks, got.Sentence, got.Requests, want)
	}
}

// TestAPodThatTheSchedulerDoesNotLookAt: it would have a node, and is told how long
// that takes at most.
func TestAPodThatTheSchedulerDoesNotLookAt(t *testing.T) {
	for status, hints := range map[string]int{
		"": 0,
		"status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}":   1,
		"status: {conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated}]}": 0,
	} {
		pod := strings.TrimSuffix(claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 6")+"]"), "---") + status + "\n---"
		e := explain(t, zoneClass, zonedNode("n1", []zone{{8, 1, "8Gi"}}), pod)
		if e.Node != "n1" || len(e.Hints) != hints || hints > 0 && !strings.HasPrefix(e.Hints[0], "the scheduler said no when it looked last") {
			t.Errorf("%s: node %s, hints %q", status, e.Node, e.Hints)
		}
	}
}

// TestClaimsOfInitContainersAddUp: they are all held as long as the pod is there.
func TestClaimsOfInitContainersAddUp(t *testing.T) {
	pod := template("early", "requests: ["+zoneRequest("zone", "cpu: 6")+"]") + template("late", "requests: ["+zoneRequest("zone", "cpu: 6")+"]") +
		podWith("p", `resourceClaims: [{name: early, resourceClaimTemplateName: early}, {name: late, resourceClaimTemplateName: late}],
  initContainers: [{name: i, resources: {claims: [{name: early}]}}], containers: [{name: main, resources: {claims: [{name: late}]}}]`)
	e := explain(t, zoneClass, zonedNode("n1", []zone{{8, 1, "8Gi"}}), pod)
	if got := e.Nodes[0]; got.Blocks != funnel.StageTogether || got.Sentence != "the claims early, late could each be met alone, but not all together" ||
		!strings.Contains(got.Hint, "claims of init containers add up") || len(e.Hints) != 1 {
		t.Errorf("blocked by %s: %s; hints %q", got.Blocks, got.Sentence, e.Hints)
	}
}

// TestSearchThatTakesTooLongMakesTheSchedulerGiveUp: the many before the rare. The
// scheduler has ten seconds; the test does not wait for them.
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
	if hint := abort.Hint(); !strings.Contains(hint, "ask for what is rarest first") {
		t.Errorf("hint %q", hint)
	}
}
