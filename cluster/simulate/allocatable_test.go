package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// allocatableNode has a zone of 8 CPUs and 16Gi that count as the node's own, a card that
// takes one CPU per pod and half a CPU per container, and a chip that counts as 2 CPUs.
func allocatableNode() string {
	maps := func(resource string) string {
		return fmt.Sprintf(`%[1]s: {mapping: {capacityKey: %[1]s, capacityMultiplier: "1"}}`, resource)
	}
	text := zonedNode("n1", []zone{{8, 2, "16Gi"}},
		`{name: card, attributes: {kind: {string: card}}, nodeAllocatableResources: {cpu: {overhead: {perPod: "1", perContainer: 500m}}}}`,
		`{name: chip, attributes: {kind: {string: chip}}, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "2"}}}}`)
	return strings.Replace(text, "    allowMultipleAllocations: true", "    allowMultipleAllocations: true\n    nodeAllocatableResources: {"+maps("cpu")+", "+maps("memory")+"}", 1)
}

var kindClasses = object.ClassText("card", `device.attributes["dra.numa"].kind == "card"`) +
	object.ClassText("chip", `device.attributes["dra.numa"].kind == "chip"`)

// podAndClaim is a pod with requests of its own, further fields of its spec, and a claim.
func podAndClaim(name, requests, more, claim string) string {
	return template(name, "requests: ["+claim+"]") + podWith(name, more+
		"resourceClaims: [{name: devices, resourceClaimTemplateName: "+name+"}], "+
		"containers: [{name: main, resources: {requests: {"+requests+"}, claims: [{name: devices}]}}]")
}

// With the feature gate, what a claim holds of a mapped device counts like requests.
func TestDevicesCountAsTheNodesResources(t *testing.T) {
	simple := func(class string) string { return "{name: d, exactly: {deviceClassName: " + class + "}}" }
	for name, tc := range map[string]struct{ objects, pod, want string }{
		"fits": {"", podAndClaim("p", "cpu: 2", "", zoneRequest("z", "cpu: 6")), ""},
		"cpu": {
			"",
			podAndClaim("p", "cpu: 3", "", zoneRequest("z", "cpu: 6")),
			"with the devices of its claims, the pod requests cpu 9, but the node has 8",
		},
		"what is rounded up": {"", podAndClaim("p", "cpu: 1", "", zoneRequest("z", "cpu: 7")), "requests cpu 9"},
		"memory is plenty":   {"", podAndClaim("p", "memory: 1000Gi", "", zoneRequest("z", "memory: 16Gi")), ""},
		"memory": {
			"",
			podAndClaim("p", "memory: 1010Gi", "", zoneRequest("z", "memory: 16Gi")),
			"requests memory 1026Gi, but the node has 1Ti",
		},
		"a pod before": {
			podWith("a", "containers: ["+container("main", "cpu: 3")+"]"),
			podAndClaim("p", "", "", zoneRequest("z", "cpu: 6")),
			"requests cpu 6, but only 5 of 8 are free",
		},
		"a claim before": {
			podAndClaim("a", "", "", zoneRequest("z", "cpu: 6")),
			podWith("p", "containers: ["+container("main", "cpu: 3")+"]"),
			"requests cpu 3, but only 2 of 8 are free",
		},
		"overhead":           {"", podAndClaim("p", "cpu: 7", "", simple("card")), "requests cpu 8500m"},
		"overhead that fits": {"", podAndClaim("p", "cpu: 6500m", "", simple("card")), ""},
		"a device that is 2": {"", podAndClaim("p", "cpu: 7", "", simple("chip")), "requests cpu 9"},
		"2 and 6":            {"", podAndClaim("p", "", "", simple("chip")+", "+zoneRequest("z", "cpu: 6")), ""},
		"requests as a whole": {
			"",
			podAndClaim("p", "cpu: 1", "resources: {requests: {cpu: 4}}, ", zoneRequest("z", "cpu: 4")),
			"the pod-level request is cpu 4, but its containers and their claims need 5",
		},
		"whole, enough": {
			"",
			podAndClaim("p", "cpu: 1", "resources: {requests: {cpu: 5}}, ", zoneRequest("z", "cpu: 4")),
			"",
		},
		"limits as a whole": {
			"", template("p", "requests: ["+zoneRequest("z", "cpu: 4")+"]") + podWith("p", "resources: {limits: {cpu: 5}, requests: {cpu: 5}}, "+
				"resourceClaims: [{name: devices, resourceClaimTemplateName: p}], containers: [{name: main, resources: {limits: {cpu: 2}, requests: {cpu: 1}, claims: [{name: devices}]}}]"),
			"the pod-level limit is cpu 5, but its container main and the container's claims need 6",
		},
	} {
		manifests := []string{zoneClass, kindClasses, allocatableNode(), tc.objects, tc.pod}
		got := runWith(t, Options{AllNodes: true}, "DRANodeAllocatableResources=true", manifests...)
		switch {
		case tc.want != "":
			t.Run(name, func(t *testing.T) { wantReason(t, got, "p", tc.want) })
		case len(got.Unschedulable) > 0:
			t.Errorf("%s: %s", name, where(got))
		}
		if off := run(t, manifests...); len(off.Unschedulable) > 0 {
			t.Errorf("%s, without the gate: %s", name, where(off))
		}
	}
}

// Before Kubernetes 1.38, the scheduler cannot write them to the status of the pod.
func TestTheSchedulerGivesUpOnExtendedResourcesThatCount(t *testing.T) {
	class := strings.Replace(kindClasses, "spec: {selectors", "spec: {extendedResourceName: example.com/card, selectors", 1)
	pod := podWith("p", "containers: [{name: main, resources: {limits: {example.com/card: 1}}}]")
	s := read(t, class, allocatableNode(), pod)
	placed, err := cluster(t, s, "DRANodeAllocatableResources=true").Place(t.Context(), s.Waiting()[0], Options{})
	if err != nil || placed.Aborted == nil || !strings.Contains(placed.Aborted.Error(), "which the API server refuses") {
		t.Errorf("placement %+v, %v, want that the scheduler gives up", placed, err)
	}
	if off := run(t, class, allocatableNode(), pod); len(off.Unschedulable) > 0 {
		t.Errorf("without the gate: %s", where(off))
	}
	rules, err := rulesOf(38).With("DRANodeAllocatableResources=true")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(s, rules)
	if err != nil {
		t.Fatal(err)
	}
	if placed, err := c.Place(t.Context(), s.Waiting()[0], Options{}); err != nil || placed.Node != "n1" ||
		placed.bound.Status.NodeAllocatableResourceClaimStatuses[0].ResourceClaimName != placed.Claims[0].Claim.Name {
		t.Errorf("1.38: placement %+v, %v, want node n1", placed, err)
	}
}

// The scheduler refuses a second pod for a claim whose devices count as the node's
// resources.
func TestAMappedClaimIsNotShared(t *testing.T) {
	claim := strings.Replace(template("c", "requests: ["+zoneRequest("z", "cpu: 2")+"]"), "Template", "", 1)
	claim = strings.Replace(claim, "spec:\n  spec:\n    devices", "spec:\n  devices", 1)
	user := func(name string) string {
		return podWith(name, "resourceClaims: [{name: devices, resourceClaimName: c}], containers: [{name: main, resources: {claims: [{name: devices}]}}]")
	}
	manifests := []string{zoneClass, allocatableNode(), claim, user("a"), user("b")}
	wantReason(t, runWith(t, Options{}, "DRANodeAllocatableResources=true", manifests...), "b", "so pods cannot share the claim")
	if off := run(t, manifests...); len(off.Unschedulable) > 0 {
		t.Errorf("without the gate: %s", where(off))
	}
}
