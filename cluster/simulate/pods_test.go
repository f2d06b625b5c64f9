package simulate

import (
	"fmt"
	"strings"
	"testing"
)

// podWith is a pod with a spec.
func podWith(name, spec string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {%s}
---`, name, spec)
}

// nodeWith is a Node without devices.
func nodeWith(name, spec, allocatable string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata: {name: %s}
spec: {%s}
status: {allocatable: {%s}}
---`, name, spec, allocatable)
}

func container(name, requests string) string {
	return fmt.Sprintf("{name: %s, resources: {requests: {%s}}}", name, requests)
}

// These reasons of the scheduler's other plugins have nothing to do with devices.
func TestNodesThatDoNotSuitAreRefused(t *testing.T) {
	const room = "cpu: 4, memory: 4Gi, pods: 10, hugepages-2Mi: 64Mi, example.com/thing: 1"
	small := "containers: [" + container("main", "cpu: 1") + "]"
	for name, tc := range map[string]struct{ node, pod, want string }{
		"cordon": {nodeWith("n1", "unschedulable: true", room), small, "the node is cordoned"},
		"cordon, tolerated": {
			nodeWith("n1", "unschedulable: true", room),
			small + ", tolerations: [{operator: Exists}]",
			"",
		},
		"taint": {
			nodeWith("n1", "taints: [{key: a, value: b, effect: NoSchedule}]", room),
			small,
			"the pod does not tolerate the node's taint a=b:NoSchedule",
		},
		"taint, tolerated": {
			nodeWith("n1", "taints: [{key: a, value: b, effect: NoSchedule}]", room),
			small + ", tolerations: [{key: a, operator: Equal, value: b}]",
			"",
		},
		"taint, preferred": {nodeWith("n1", "taints: [{key: a, effect: PreferNoSchedule}]", room), small, ""},
		"selector": {
			nodeWith("n1", "", room),
			small + ", nodeSelector: {a: b}",
			"does not match the pod's node selector",
		},
		"affinity": {nodeWith("n1", "", room), small + ", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
			"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}]}}}", "does not match the pod's node selector or affinity"},
		"cpu": {
			nodeWith("n1", "", room),
			"containers: [" + container("a", "cpu: 3") + "," + container("b", "cpu: 1500m") + "]",
			"the pod requests cpu 4500m, but the node has 4",
		},
		"memory": {
			nodeWith("n1", "", room),
			"containers: [" + container("a", "memory: 5Gi") + "]",
			"the pod requests memory 5Gi, but the node has 4Gi",
		},
		"hugepages": {
			nodeWith("n1", "", room),
			"containers: [" + container("a", "hugepages-2Mi: 128Mi") + "]",
			"hugepages-2Mi 128Mi, but the node has 64Mi",
		},
		"a plugin's": {
			nodeWith("n1", "", room),
			"containers: [" + container("a", "example.com/thing: 2") + "]",
			"example.com/thing 2, but the node has 1",
		},
		"limits":   {nodeWith("n1", "", room), "containers: [{name: a, resources: {limits: {cpu: 5}}}]", "cpu 5"},
		"overhead": {nodeWith("n1", "", room), small + ", overhead: {cpu: 3500m}", "cpu 4500m"},
		"init": {
			nodeWith("n1", "", room),
			small + ", initContainers: [" + container("i", "cpu: 4") + "," + container("j", "cpu: 4") + "]",
			"",
		},
		"sidecar": {nodeWith("n1", "", room), "containers: [" + container("main", "cpu: 2") + "], initContainers: [" +
			"{name: s, restartPolicy: Always, resources: {requests: {cpu: 3}}}]", "cpu 5"},
		"init after a sidecar": {nodeWith("n1", "", room), small + ", initContainers: [" +
			"{name: s, restartPolicy: Always, resources: {requests: {cpu: 2}}}, " + container("i", "cpu: 3") + "]", "cpu 5"},
		"pods":              {nodeWith("n1", "", "cpu: 4, pods: 0"), small, "the node already runs its maximum of 0 pods"},
		"nothing is said":   {nodeWith("n1", "", ""), small, ""},
		"no number of pods": {nodeWith("n1", "", "cpu: 4"), small, ""},
		"gate": {
			nodeWith("n1", "", room),
			small + ", schedulingGates: [{name: wait}]",
			`waits for its scheduling gate "wait"`,
		},
	} {
		got := run(t, tc.node, podWith("p", tc.pod))
		switch {
		case tc.want != "":
			t.Run(name, func(t *testing.T) { wantReason(t, got, "p", tc.want) })
		case len(got.Pods) == 0:
			t.Errorf("%s: %s", name, where(got))
		}
	}
}

func TestRunningPodsAreCountedAndFinishedOnesAreNot(t *testing.T) {
	main := "containers: [" + container("main", "cpu: 3") + "]"
	node := nodeWith("n1", "", "cpu: 4, pods: 10")
	running := podWith("running", "nodeName: n1, "+main)
	wantReason(t, run(t, node, running, podWith("p", main)), "p", "only 1 of 4 are free")
	wantReason(t, run(t, node, podWith("first", main), podWith("p", main)), "p", "only 1 of 4 are free")
	resized := strings.Replace(podWith("running", "nodeName: n1, containers: ["+container("main", "cpu: 1")+"]"), "\n---",
		"\nstatus: {phase: Running, containerStatuses: [{name: main, resources: {requests: {cpu: 3}}, allocatedResources: {cpu: 3}}]}\n---", 1)
	wantReason(t, run(t, node, resized, podWith("p", main)), "p", "only 1 of 4 are free")
	finished := strings.Replace(running, "\n---", "\nstatus: {phase: Succeeded}\n---", 1)
	wantPlaced(t, run(t, node, finished, podWith("p", main)), "p on n1 of n1:\n")
}

const gpuRequest = "requests: [{name: gpu, exactly: {deviceClassName: gpu.dra.numa}}]"

func gpuNode(name string, gpus int) string {
	var devices []string
	for i := range gpus {
		devices = append(devices, wholeDevice(fmt.Sprintf("gpu-%d", i), 0, "pci0000:00"))
	}
	return zonedNode(name, []zone{{8, 2, "8Gi"}}, devices...)
}

func claim(name, devices, status string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec: {devices: {%s}}
%s
---`, name, devices, status)
}

// shareID is the id of a share of a device.
const shareID = "shareID: 00000000-0000-8000-8000-000000000000"

// allocated is the status of a claim that holds a device on node n1. more is further
// fields of the result.
func allocated(request, driver, device string, more ...string) string {
	return fmt.Sprintf(`
status:
  allocation:
    devices:
      results:
      - {request: %s, driver: %s, pool: n1, device: %s%s}
`, request, driver, device, strings.Join(append([]string{""}, more...), ", "))
}

func using(name, claim string) string {
	return podWith(name, "containers: [{name: main}], resourceClaims: [{name: c, resourceClaimName: "+claim+"}]")
}

// The second pod goes to the node where the first pod got the claim.
func TestPodsThatShareAClaimFollowIt(t *testing.T) {
	got := run(t, gpuClass, gpuNode("n1", 0), gpuNode("n2", 1), gpuNode("n3", 1), claim("shared", gpuRequest, ""),
		using("a", "shared"), using("b", "shared"), claimingPod("own", gpuRequest))
	wantPlaced(t, got, `
a on n2 of n2 n3: gpu=n2/gpu-0
b on n2 of n2: gpu=n2/gpu-0
own on n3 of n3: gpu=n3/gpu-0
`)
}

// From Kubernetes 1.38 on, results may spell capacities with the driver's domain.
func TestAllocatedClaimsOfTheSnapshotAreHeld(t *testing.T) {
	for _, prefix := range []string{"", "dra.numa/"} {
		held := claim("held", gpuRequest, `status: {allocation: {devices: {results: [{request: gpu, driver: dra.numa, pool: n1, device: gpu-0}]},
  nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}`)
		share := claim("share", "requests: ["+zoneRequest("zone", "cpu: 6")+"]",
			allocated("zone", "dra.numa", "numa-0", shareID, `consumedCapacity: {`+prefix+`cpu: "6", `+prefix+`memory: "0"}`))
		got := run(t, zoneClass, gpuClass, gpuNode("n1", 1), gpuNode("n2", 0), held, share, using("user", "held"),
			claimingPod("gpu", gpuRequest), claimingPod("two", "requests: ["+zoneRequest("zone", "cpu: 2")+"]"), claimingPod("more", "requests: ["+zoneRequest("zone", "cpu: 9")+"]"))
		if text := where(Result{Pods: got.Pods}); text != "user on n1 of n1: gpu=n1/gpu-0\ntwo on n1 of n1 n2: zone=n1/numa-0(2)\n" {
			t.Errorf("placed\n%s", text)
		}
		if text := where(Result{Unschedulable: got.Unschedulable}); !strings.Contains(text, "gpu nowhere: [n1] request gpu: gpu-0 is in use by other claims") ||
			!strings.Contains(text, "more nowhere: [n1] request zone: asks for 9 cpu of one device, rounded up to 10: numa-0 has 0 of 8 left") {
			t.Errorf("not placed\n%s", text)
		}
	}
}

func TestClaimInUseBy256PodsTakesNoMore(t *testing.T) {
	reserved := strings.Repeat("{resource: pods, name: x, uid: x}, ", 256)
	status := "status: {reservedFor: [" + reserved + "], allocation: {devices: {results: [{request: gpu, driver: dra.numa, pool: n1, device: gpu-0}]}}}"
	got := run(t, gpuClass, gpuNode("n1", 1), claim("full", gpuRequest, status), using("p", "full"))
	wantReason(t, got, "p", `ResourceClaim "full" is in use by 256 pods, which is the maximum`)
}

func TestWhatAPodWaitsForIsNamed(t *testing.T) {
	node := gpuNode("n1", 1)
	fromTemplate := podWith("p", "containers: [{name: main}], resourceClaims: [{name: c, resourceClaimTemplateName: gone}]")
	deleted := strings.Replace(claim("c", gpuRequest, ""), "{name: c}", "{name: c, deletionTimestamp: 2026-01-01T00:00:00Z}", 1)
	for _, tc := range []struct{ manifests, want string }{
		{using("p", "gone"), `ResourceClaim "gone" does not exist in namespace default`},
		{fromTemplate, `ResourceClaimTemplate "gone" does not exist in namespace default`},
		{
			strings.Replace(fromTemplate, "gone", "numa-0123456789abcdef0123456789abcdef", 1),
			`ResourceClaimTemplate "numa-0123456789abcdef0123456789abcdef" does not exist in namespace default, ` +
				`and the driver's Deployment whose name ends with -templates has not made it: the pod's events and its log say why`,
		},
		{deleted + using("p", "c"), `ResourceClaim "c" is being deleted`},
		{
			claim("c", strings.ReplaceAll(gpuRequest, "gpu.dra.numa", "gone"), "") + using("p", "c"),
			`DeviceClass "gone", which request "gpu" of ResourceClaim "c" asks for, does not exist`,
		},
		{
			strings.Replace(using("p", "gone"), "gone}]", "gone}, {name: d, resourceClaimTemplateName: away}], schedulingGates: [{name: g}, {name: h}]", 1),
			`the pod waits for its scheduling gate "g"; the pod waits for its scheduling gate "h"; ResourceClaim "gone" does not exist in namespace default; ` +
				`ResourceClaimTemplate "away" does not exist in namespace default`,
		},
	} {
		wantReason(t, run(t, gpuClass, node, tc.manifests), "p", tc.want)
	}
}

// A class has an extended resource name, or is requested by its own name. Init containers
// can use the devices of later containers; sidecars cannot.
func TestExtendedResourceIsADevice(t *testing.T) {
	class := strings.Replace(gpuClass, "spec: {", "spec: {extendedResourceName: example.com/gpu, ", 1)
	ask := func(name string, gpus int, more string) string {
		return fmt.Sprintf("{name: %s, resources: {limits: {example.com/gpu: %d}}%s}", name, gpus, more)
	}
	for name, tc := range map[string]struct{ spec, want string }{
		"by name": {
			"containers: [" + ask("main", 2, "") + "]",
			"container-0-request-0=n1/gpu-0 container-0-request-0=n1/gpu-1",
		},
		"by class": {
			"containers: [{name: main, resources: {limits: {deviceclass.resource.kubernetes.io/gpu.dra.numa: 1}}}]",
			"container-0-request-0=n1/gpu-0",
		},
		"two containers": {
			"containers: [" + ask("a", 1, "") + "," + ask("b", 1, "") + "]",
			"container-0-request-0=n1/gpu-0 container-1-request-0=n1/gpu-1",
		},
		"init uses main's": {
			"initContainers: [" + ask("i", 1, "") + "], containers: [" + ask("a", 2, "") + "]",
			"container-1-request-0=n1/gpu-0 container-1-request-0=n1/gpu-1",
		},
		"init wants more": {
			"initContainers: [" + ask("i", 3, "") + "], containers: [" + ask("a", 1, "") + "]",
			"container-0-request-0=n1/gpu-0 container-0-request-0=n1/gpu-1 container-1-request-0=n1/gpu-2",
		},
		"greediest init": {
			"initContainers: [" + ask("i", 1, "") + "," + ask("j", 2, "") + "," + ask("k", 1, "") + "], containers: [{name: a}]",
			"container-1-request-0=n1/gpu-0 container-1-request-0=n1/gpu-1",
		},
		"containers' order": {
			"containers: [{name: a, resources: {limits: {example.com/gpu: 1}}}, {name: b, resources: {limits: {deviceclass.resource.kubernetes.io/gpu.dra.numa: 1}}}]",
			"container-0-request-0=n1/gpu-0 container-1-request-0=n1/gpu-1",
		},
		"sidecar adds up": {
			"initContainers: [" + ask("s", 1, ", restartPolicy: Always") + "], containers: [" + ask("a", 2, "") + "]",
			"container-0-request-0=n1/gpu-0 container-1-request-0=n1/gpu-1 container-1-request-0=n1/gpu-2",
		},
	} {
		got := run(t, class, gpuNode("n1", 3), podWith("p", tc.spec))
		if text := where(got); text != "p on n1 of n1: "+tc.want+"\n" {
			t.Errorf("%s: placed\n%s\nwant %s", name, text, tc.want)
		}
	}
	four := podWith("p", "containers: ["+ask("main", 4, "")+"]")
	wantReason(t, run(t, class, gpuNode("n1", 3), four), "p", "4 devices wanted, 3 left: 1 device is not of class gpu.dra.numa")
	plugin := nodeWith("n1", "", "cpu: 4, example.com/gpu: 1")
	wantReason(t, run(t, class, plugin, four), "p", "the pod requests example.com/gpu 4, but the node has 1")
	one := podWith("p", "containers: ["+ask("main", 1, "")+"]")
	wantReason(t, run(t, class, nodeWith("n1", "", "cpu: 4"), one), "p", "the node has no devices")
	wantReason(t, runWith(t, Options{}, "DRAExtendedResource=false", class, gpuNode("n1", 1), one), "p", "the pod requests example.com/gpu 1, but the node has none")
}

func TestDeviceTaintRulesTaintDevices(t *testing.T) {
	rule := `
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: r}
spec: {deviceSelector: {driver: dra.numa, pool: n1, device: gpu-0}, taint: {key: a, value: b, effect: NoExecute}}
---`
	got := run(t, gpuClass, gpuNode("n1", 1), rule, claimingPod("p", gpuRequest))
	wantReason(t, got, "p", "the request does not tolerate these taints: gpu-0 has a=b:NoExecute")
	for gates, pod := range map[string]string{
		"":                          claimingPod("p", strings.Replace(gpuRequest, "gpu.dra.numa", "gpu.dra.numa, tolerations: [{key: a, operator: Exists}]", 1)),
		"DRADeviceTaintRules=false": claimingPod("p", gpuRequest),
		"DRADeviceTaints=false":     claimingPod("p", gpuRequest),
	} {
		if got := runWith(t, Options{}, gates, gpuClass, gpuNode("n1", 1), rule, pod); len(got.Pods) != 1 {
			t.Errorf("gates %q: %s", gates, where(got))
		}
	}
}

// The scheduler refuses fields whose feature gates are off.
func TestGatesThatAreOff(t *testing.T) {
	zonePod := claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 2")+"]")
	got := runWith(t, Options{}, "DRAConsumableCapacity=false", zoneClass, gpuNode("n1", 0), zonePod)
	if len(got.Aborted) != 1 || !strings.Contains(got.Aborted[0].Error(), "has capacity requests, but the DRAConsumableCapacity feature is disabled") || got.Aborted[0].Hint() == "" {
		t.Errorf("placed %s, gave up on %v", where(got), got.Aborted)
	}
	first := claimingPod("p", "requests: [{name: gpu, firstAvailable: [{name: a, deviceClassName: gpu.dra.numa}]}]")
	wantReason(t, runWith(t, Options{}, "DRAPrioritizedList=false", gpuClass, gpuNode("n1", 1), first), "p", "the feature gate DRAPrioritizedList is off")
	for text, want := range map[string]string{
		"DRAConsumableCapacity":                          "want NAME=true or NAME=false",
		"CPUManager=true":                                `feature gate "CPUManager" is not simulated, allowed are DRAAdminAccess, `,
		"DRADeviceTaints=false,DRADeviceTaintRules=true": "feature gate DRADeviceTaintRules=true needs DRADeviceTaints=true",
	} {
		if _, err := DefaultRules().With(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("gates %q: %v, want %s", text, err, want)
		}
	}
}

// The first share has consumed the counters already.
func TestSecondShareOfADeviceConsumesNoCountersAgain(t *testing.T) {
	two := strings.NewReplacer("resourceSliceCount: 1", "resourceSliceCount: 2")
	devices := two.Replace(slice("d", "", "{name: d1, allowMultipleAllocations: true, consumesCounters: [{counterSet: card, counters: {slots: {value: 3}}}]}",
		"{name: d2, consumesCounters: [{counterSet: card, counters: {slots: {value: 2}}}]}"))
	counters := two.Replace(strings.NewReplacer("{name: d-slice}", "{name: d-counters}", "devices: []", "sharedCounters: [{name: card, counters: {slots: {value: 4}}}]").Replace(slice("d", "")))
	counters, _, _ = strings.Cut(counters, "---")
	want := "requests: [" + requestOf("r", "d", "") + "]"
	other := "requests: [" + requestOf("r", "d", ", selectors: [{cel: {expression: '!device.allowMultipleAllocations'}}]") + "]"
	got := run(t, devices, counters, "---", nodeWith("n1", "", ""), claimingPod("a", want), claimingPod("b", want), claimingPod("c", other))
	wantReason(t, got, "c", "too little of the pool's counter card/slots is left: d2 needs 2, 1 left")
	got.Unschedulable = nil
	wantPlaced(t, got, `
a on n1 of n1: r=n1/d1
b on n1 of n1: r=n1/d1
`)
	held := claim("held", want, allocated("r", "d", "d1", shareID))
	e := explain(t, devices, counters, "---", nodeWith("n1", "", ""), held, claimingPod("p", want))
	if node := e.Nodes[0]; !node.Feasible || node.Requests[0].Left.Capacity != 1 {
		t.Errorf("explained as %+v, want d1 to be left", node)
	}
}

// A claim with admin access gets devices that other claims hold.
func TestAdminAccessHoldsNothing(t *testing.T) {
	admin := strings.Replace(gpuRequest, "gpu.dra.numa", "gpu.dra.numa, adminAccess: true", 1)
	wantPlaced(t, run(t, gpuClass, gpuNode("n1", 1), claimingPod("a", admin), claimingPod("b", gpuRequest), claimingPod("c", admin)), `
a on n1 of n1: gpu=n1/gpu-0
b on n1 of n1: gpu=n1/gpu-0
c on n1 of n1: gpu=n1/gpu-0
`)
}

// This is allocationMode All.
func TestAllDevicesOrNone(t *testing.T) {
	all := strings.Replace(gpuRequest, "gpu.dra.numa", "gpu.dra.numa, allocationMode: All", 1)
	got := run(t, gpuClass, gpuNode("n1", 2), claimingPod("a", all), claimingPod("b", all))
	wantReason(t, got, "b", "2 devices wanted, 0 left: gpu-0, gpu-1 are in use by other claims")
	got.Unschedulable = nil
	wantPlaced(t, got, "a on n1 of n1: gpu=n1/gpu-0 gpu=n1/gpu-1\n")
}

func TestOnlyTheNamedNodeIsConsidered(t *testing.T) {
	got := runWith(t, Options{Node: "n2", AllNodes: true}, "", gpuClass, gpuNode("n1", 1), gpuNode("n2", 1), gpuNode("n3", 1), claimingPod("p", gpuRequest))
	wantPlaced(t, got, "p on n2 of n2: gpu=n2/gpu-0\n")
}

func TestStrategyPicksAmongFeasibleNodes(t *testing.T) {
	manifests := []string{gpuClass, gpuNode("n1", 2), gpuNode("n2", 2), claimingPod("a", gpuRequest), claimingPod("b", gpuRequest), claimingPod("c", gpuRequest)}
	for strategy, want := range map[Strategy]string{"": "n1 n1 n2", Scheduler: "n1 n1 n2", First: "n1 n1 n2", Spread: "n1 n2 n1", Pack: "n1 n1 n2"} {
		var nodes []string
		for _, pod := range runWith(t, Options{Strategy: strategy}, "", manifests...).Pods {
			nodes = append(nodes, pod.Node)
			if len(pod.FeasibleNodes) != 1 || pod.FeasibleNodes[0] != pod.Node {
				t.Errorf("%s: feasible are %q, placed on %s", strategy, pod.FeasibleNodes, pod.Node)
			}
		}
		if got := strings.Join(nodes, " "); got != want {
			t.Errorf("%s: placed on %s, want %s", strategy, got, want)
		}
	}
	onto := podWith("x", "nodeName: n2, containers: [{name: main}]")
	if got := runWith(t, Options{Strategy: Pack}, "", append(manifests, onto)...); got.Pods[0].Node != "n2" {
		t.Errorf("pack: placed on %s, want n2, which has a pod", got.Pods[0].Node)
	}
}
