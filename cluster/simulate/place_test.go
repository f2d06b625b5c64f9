package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// wholeDevice is a line for zonedNode: a device that one claim holds as a whole.
func wholeDevice(name string, numaNode int, root string) string {
	return fmt.Sprintf("{name: %s, attributes: {kind: {string: gpu}, resource.kubernetes.io/numaNode: {int: %d}, resource.kubernetes.io/pcieRoot: {string: %s}}}", name, numaNode, root)
}

// gpuClass has a guard, and reads no attribute that a device may lack.
var gpuClass = object.ClassText("gpu.dra.numa", `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "gpu"`)

func wantPlaced(t *testing.T, got Result, want string) {
	t.Helper()
	if text := where(got); text != strings.TrimLeft(want, "\n") {
		t.Errorf("placed\n%s\nwant\n%s", text, strings.TrimLeft(want, "\n"))
	}
}

// wantReason wants that the pod has no node, and that every node's reason has the text.
func wantReason(t *testing.T, got Result, pod, text string) {
	t.Helper()
	for _, u := range got.Unschedulable {
		if u.Pod != "default/"+pod {
			continue
		}
		if len(u.Reasons) == 0 {
			t.Errorf("pod %s has no node, and no reason; want %q", pod, text)
		}
		for _, r := range u.Reasons {
			if !strings.Contains(r.Reason, text) {
				t.Errorf("node %q refuses pod %s: %s\nwant %q in it", r.Node, pod, r.Reason, text)
			}
		}
		return
	}
	t.Errorf("pod %s is placed:\n%s", pod, where(got))
}

func TestClaimLargerThanEveryZoneIsPendingAlthoughTheSumWouldDo(t *testing.T) {
	zones := []zone{{12, 1, "12Gi"}, {12, 1, "12Gi"}}
	got := run(t, zoneClass, zonedNode("n1", zones), zonedNode("n2", zones),
		claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 16, memory: 16Gi")+"]"))
	wantReason(t, got, "p", "16")
}

// Files may have the slices of a node, as generate slices writes them, and not the Node.
func TestSlicesWithoutTheirNodeAreNoNode(t *testing.T) {
	manifests := []string{zoneClass, slice("dra.numa", "", "{name: numa-0}"), claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 1")+"]")}
	wantReason(t, run(t, manifests...), "p", "there is no object of the kind Node")
	if e := explain(t, manifests...); !strings.Contains(e.Sentence, "there is no object of the kind Node") {
		t.Errorf("explain says %q", e.Sentence)
	}
}

// The first choice for the small request leaves no room for the big one, which must be
// near the only device.
func TestSmallRequestBeforeBigOneIsPlacedByBacktracking(t *testing.T) {
	got := run(t, zoneClass, gpuClass,
		zonedNode("n1", []zone{{8, 1, "8Gi"}, {4, 1, "4Gi"}}, wholeDevice("gpu-0", 0, "pci0000:00")),
		claimingPod("p", `
requests: [`+zoneRequest("small", "cpu: 4")+", "+zoneRequest("big", "cpu: 8, memory: 8Gi")+`, {name: gpu, exactly: {deviceClassName: gpu.dra.numa}}],
constraints: [{requests: [big, gpu], matchAttribute: resource.kubernetes.io/numaNode}]`))
	wantPlaced(t, got, `
p on n1 of n1: small=n1/numa-1(4) big=n1/numa-0(8) gpu=n1/gpu-0
`)
}

func TestFourOfFivePodsRunAtOnceWhereEachTakesMoreThanHalfAZone(t *testing.T) {
	zones := []zone{{20, 1, "64Gi"}, {20, 1, "64Gi"}}
	manifests := []string{zoneClass, zonedNode("n1", zones), zonedNode("n2", zones)}
	for i := range 5 {
		manifests = append(manifests, claimingPod(fmt.Sprintf("p%d", i), "requests: ["+zoneRequest("zone", "cpu: 12")+"]"))
	}
	got := run(t, manifests...)
	wantReason(t, got, "p4", "12")
	got.Unschedulable = nil
	wantPlaced(t, got, `
p0 on n1 of n1 n2: zone=n1/numa-0(12)
p1 on n1 of n1 n2: zone=n1/numa-1(12)
p2 on n2 of n2: zone=n2/numa-0(12)
p3 on n2 of n2: zone=n2/numa-1(12)
`)
}

func TestRequestIsRoundedUpToWholeCores(t *testing.T) {
	got := run(t, zoneClass, zonedNode("n1", []zone{{8, 2, "8Gi"}}),
		claimingPod("three", "requests: ["+zoneRequest("zone", "cpu: 3")+"]"),
		claimingPod("half", "requests: ["+zoneRequest("zone", "cpu: 2500m")+"]"))
	wantPlaced(t, got, `
three on n1 of n1: zone=n1/numa-0(4)
half on n1 of n1: zone=n1/numa-0(4)
`)
}

func TestCapacityWithTheDriversPrefixIsPendingAndNamed(t *testing.T) {
	got := run(t, zoneClass, zonedNode("n1", []zone{{8, 2, "8Gi"}}),
		claimingPod("p", "requests: ["+zoneRequest("zone", "dra.numa/cpu: 2")+"]"))
	wantReason(t, got, "p", "dra.numa/cpu")
}

func TestTwoOfFourDevicesOnAnotherPCIeRoot(t *testing.T) {
	node := zonedNode("n1", []zone{{8, 2, "8Gi"}},
		wholeDevice("nic-0", 0, "pci0000:00"), wholeDevice("nic-1", 0, "pci0000:40"),
		wholeDevice("nic-2", 0, "pci0000:00"), wholeDevice("nic-3", 0, "pci0000:40"))
	aligned := func(count int) string {
		return fmt.Sprintf("requests: [{name: nic, exactly: {deviceClassName: gpu.dra.numa, count: %d}}], constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]", count)
	}
	wantPlaced(t, run(t, gpuClass, node, claimingPod("two", aligned(2)), claimingPod("again", aligned(2))), `
two on n1 of n1: nic=n1/nic-0 nic=n1/nic-2
again on n1 of n1: nic=n1/nic-1 nic=n1/nic-3
`)
	wantReason(t, run(t, gpuClass, node, claimingPod("three", aligned(3))), "three", "resource.kubernetes.io/pcieRoot")
}

// There are four zones on two sockets, and each pod leaves less free.
func TestFirstAvailableChoosesOneZoneThenOneSocketThenAny(t *testing.T) {
	alternative := func(name string, count, cpus int) string {
		return fmt.Sprintf("{name: %s, deviceClassName: zone.dra.numa, count: %d, capacity: {requests: {cpu: %d}}}", name, count, cpus)
	}
	wish := `
requests: [{name: cpus, firstAvailable: [` + alternative("one-zone", 1, 8) + ", " + alternative("one-socket", 2, 4) + ", " + alternative("any", 4, 2) + `]}],
constraints: [{requests: [cpus/one-socket], matchAttribute: dra.numa/socket}]`
	node := func(free ...int) string {
		var zones []zone
		for _, cpus := range free {
			zones = append(zones, zone{cpus, 1, "64Gi"})
		}
		return zonedNode("n1", zones)
	}
	for _, tc := range []struct {
		free []int
		want string
	}{
		{[]int{4, 4, 8, 8}, "cpus/one-zone=n1/numa-2(8)"},
		{[]int{4, 2, 7, 7}, "cpus/one-socket=n1/numa-2(4) cpus/one-socket=n1/numa-3(4)"},
		{[]int{4, 2, 2, 7}, "cpus/any=n1/numa-0(2) cpus/any=n1/numa-1(2) cpus/any=n1/numa-2(2) cpus/any=n1/numa-3(2)"},
	} {
		wantPlaced(t, run(t, zoneClass, node(tc.free...), claimingPod("p", wish)), "p on n1 of n1: "+tc.want+"\n")
	}
	wantReason(t, run(t, zoneClass, node(4, 2, 1, 7), claimingPod("p", wish)), "p", "no alternative of request cpus fits")
}

func TestTwoClaimsNeverGetOneDevice(t *testing.T) {
	node := zonedNode("n1", []zone{{8, 2, "8Gi"}}, wholeDevice("gpu-0", 0, "pci0000:00"))
	gpu := "requests: [{name: gpu, exactly: {deviceClassName: gpu.dra.numa}}]"
	got := run(t, gpuClass, node, claimingPod("first", gpu), claimingPod("second", gpu))
	wantReason(t, got, "second", "gpu-0")
	got.Unschedulable = nil
	wantPlaced(t, got, "first on n1 of n1: gpu=n1/gpu-0\n")

	both := template("a", gpu) + template("b", gpu) + `
apiVersion: v1
kind: Pod
metadata: {name: both}
spec:
  resourceClaims: [{name: a, resourceClaimTemplateName: a}, {name: b, resourceClaimTemplateName: b}]
  containers: [{name: main}]
---`
	wantReason(t, run(t, gpuClass, node, both), "both", "")
}

func TestClassThatReadsAMissingAttributeMakesTheSchedulerGiveUp(t *testing.T) {
	class := object.ClassText("unguarded", `device.attributes["resource.kubernetes.io"].numaNode == 1`)
	bare := `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: bare}
spec:
  driver: bare.example.com
  nodeName: n2
  pool: {name: n2, generation: 1, resourceSliceCount: 1}
  devices: [{name: d}]
---`
	zones := []zone{{8, 2, "8Gi"}, {8, 2, "8Gi"}}
	pod := claimingPod("p", "requests: [{name: zone, exactly: {deviceClassName: unguarded}}]")
	got := runWith(t, Options{}, "", class, bare, zonedNode("n1", zones), zonedNode("n2", zones), pod)
	if len(got.Aborted) != 1 || len(got.Unschedulable) != 1 {
		t.Fatalf("placed\n%s\nand gave up on %v", where(got), got.Aborted)
	}
	const want = "the scheduler gives up on pod default/p because of node n2: class unguarded: selector #0 on device bare.example.com/n2/d: CEL runtime error: no such key: numaNode"
	if text := got.Aborted[0].Error(); !strings.HasPrefix(text, want) {
		t.Errorf("error %q, want %q", text, want)
	}
	if hint := got.Aborted[0].Hint(); !strings.Contains(hint, ".?numaNode.orValue(") {
		t.Errorf("hint %q", hint)
	}
}

// Older builds published attributes with the driver's domain in their names.
func TestPlacementAndExplanationAreAlikeInBothSpellings(t *testing.T) {
	const sameSocket = "constraints: [{matchAttribute: dra.numa/socket}]"
	zones := []zone{{8, 1, "8Gi"}, {8, 1, "8Gi"}, {8, 1, "8Gi"}}
	objects := []string{
		zonedNode("n1", zones, wholeDevice("gpu-0", 2, "pci0000:00")), zoneClass, gpuClass,
		object.ClassText("nic.dra.numa", `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "nic"`),
		claimingPod("fits", "requests: ["+zoneRequest("a", "cpu: 5")+","+zoneRequest("b", "cpu: 5")+"], "+sameSocket),
		claimingPod("large", "requests: ["+zoneRequest("a", "cpu: 8")+","+zoneRequest("b", "cpu: 8")+"], "+sameSocket),
		claimingPod("gpu", "requests: ["+requestOf("gpu", "gpu.dra.numa", "")+"]"),
		claimingPod("unlike", "requests: ["+zoneRequest("a", "cpu: 1")+","+requestOf("gpu", "gpu.dra.numa", "")+"], "+sameSocket),
		claimingPod("nic", "requests: ["+requestOf("nic", "nic.dra.numa", "")+"]"),
	}
	said := func(spell func([]*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice) (text string) {
		s := read(t, objects...)
		s.Slices = spell(s.Slices)
		c := cluster(t, s, "")
		for _, pod := range s.Waiting() {
			e, err := c.ExplainPod(t.Context(), pod)
			if err != nil {
				t.Fatal(err)
			}
			document, err := json.MarshalIndent(e, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			text += string(document) + "\n"
		}
		result, err := c.Run(t.Context(), s.Waiting(), Options{AllNodes: true})
		if err != nil {
			t.Fatal(err)
		}
		return text + where(result)
	}
	published := said(func(slices []*resourceapi.ResourceSlice) []*resourceapi.ResourceSlice { return slices })
	if diff := cmp.Diff(published, said(object.WithDomain)); diff != "" {
		t.Errorf("-without the domain +with it:\n%s", diff)
	}
	for _, part := range []string{"no node has a device whose dra.numa/kind is nic", "dra.numa/socket", "fits on n1"} {
		if !strings.Contains(published, part) {
			t.Errorf("%q is not in\n%s", part, published)
		}
	}
}
