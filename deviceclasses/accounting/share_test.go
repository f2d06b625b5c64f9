package accounting

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
)

// objects are the objects that the tests can look up, by name.
type objects struct {
	claims    map[string]*resourceapi.ResourceClaim
	templates map[string]*resourceapi.ResourceClaimTemplate
	steps     Steps
}

func (o objects) DeviceClass(name string) *resourceapi.DeviceClass {
	expressions := map[string]string{
		"zone.dra.numa":   `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"`,
		"own-zones":       `device.driver=='dra.numa'&&device.attributes['dra.numa'].kind=='zone'`,
		"gpu.dra.numa":    `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "gpu"`,
		"gpu.example.com": `device.driver == "gpu.example.com"`,
		"any":             "true",
		"optional":        `device.driver == "dra.numa" && device.attributes["dra.numa"].?kind.orValue("") == "zone"`,
		"swapped":         `"dra.numa" == device.driver && "zone" == device.attributes["dra.numa"].kind`,
		"performance":     `device.driver == "dra.numa" && device.attributes["dra.numa"].?coreType.orValue("") == "performance"`,
		"ours":            `device.driver == "dra.numa"`,
		"no-zone":         `device.driver == "dra.numa" && !(device.attributes["dra.numa"].kind == "zone")`,
	}
	expression, ok := expressions[name]
	if !ok {
		return nil
	}
	return &resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{Selectors: selectors(expression)}}
}

func selectors(expression string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
}

func (o objects) ResourceClaim(_, name string) *resourceapi.ResourceClaim { return o.claims[name] }

func (o objects) ResourceClaimTemplate(_, name string) *resourceapi.ResourceClaimTemplate {
	return o.templates[name]
}

func (o objects) Steps() Steps { return o.steps }

func (o objects) Selectors() *probe.Selectors { return probe.New() }

// claimOf reads the requests of a claim in YAML.
func claimOf(t *testing.T, requests string) resourceapi.ResourceClaimSpec {
	t.Helper()
	var spec resourceapi.ResourceClaimSpec
	if err := yaml.UnmarshalStrict([]byte("devices: {requests: ["+requests+"]}"), &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

func textOf(shares []Share) string {
	var parts []string
	for _, share := range shares {
		parts = append(parts, fmt.Sprintf("%s/%s: %s", share.Claim, share.Request, Text(share.Amounts)))
	}
	return strings.Join(parts, "; ")
}

const someZone = "{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 3, memory: 1Gi}}}}"

func TestWanted(t *testing.T) {
	known := objects{steps: Steps{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Mi")}}
	for name, row := range map[string]struct{ requests, want, err string }{
		"rounded to the step": {someZone, "c/z: cpu 4, memory 1Gi", ""},
		"fraction of a CPU": {
			"{name: z, exactly: {deviceClassName: own-zones, capacity: {requests: {cpu: 2500m}}}}",
			"c/z: cpu 4",
			"",
		},
		"hugepages": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {hugepages2Mi: 3Mi, cpu: 0}}}}", "c/z: hugepages-2Mi 4Mi", "",
		},
		"count": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, count: 2, capacity: {requests: {cpu: 2}}}}",
			"c/z: cpu 4",
			"",
		},
		"no capacity": {"{name: z, exactly: {deviceClassName: zone.dra.numa}}", "", ""},
		"key with the driver's name": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.numa/cpu: 2}}}}",
			"c/z: cpu 2",
			"",
		},
		"unknown key": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {dra.cpu/cpu: 2}}}}",
			"",
			"",
		},
		"admin access": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, adminAccess: true, capacity: {requests: {cpu: 2}}}}",
			"",
			"",
		},
		"other kind": {"{name: z, exactly: {deviceClassName: gpu.dra.numa, capacity: {requests: {memory: 2}}}}", "", ""},
		"other driver": {
			"{name: z, exactly: {deviceClassName: gpu.example.com, capacity: {requests: {memory: 2}}}}",
			"",
			"",
		},
		"all of them": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, allocationMode: All, capacity: {requests: {cpu: 2}}}}",
			"",
			`request "z": allocationMode All: the number of zones depends on the node`,
		},
		"unknown class": {"{name: z, exactly: {deviceClassName: fast}}", "", `request "z": there is no device class "fast"`},
		"too much": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {memory: 9999999999999999999}}}}",
			"",
			`request "z": memory 9999999999999999999: no zone has that much`,
		},
		"own selectors": {
			`{name: z, exactly: {
				deviceClassName: any,
				capacity: {requests: {cpu: 2}},
				selectors: [{cel: {expression: 'device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"'}}],
			}}`,
			"c/z: cpu 2",
			"",
		},
		"optional kind":                      {"{name: z, exactly: {deviceClassName: optional, capacity: {requests: {cpu: 2}}}}", "c/z: cpu 2", ""},
		"swapped operands":                   {"{name: z, exactly: {deviceClassName: swapped, capacity: {requests: {cpu: 2}}}}", "c/z: cpu 2", ""},
		"by core type":                       {"{name: z, exactly: {deviceClassName: performance, capacity: {requests: {cpu: 2}}}}", "c/z: cpu 2", ""},
		"only zones of the driver have CPUs": {"{name: z, exactly: {deviceClassName: ours, capacity: {requests: {cpu: 2}}}}", "c/z: cpu 2", ""},
		"every kind but zones": {
			`{name: z, exactly: {
				deviceClassName: no-zone,
				capacity: {requests: {cpu: 2}},
				selectors: [{cel: {expression: 'device.attributes["dra.numa"].kind != "isolated"'}}],
			}}`,
			"",
			"",
		},
		"any driver": {
			"{name: z, exactly: {deviceClassName: any, capacity: {requests: {cpu: 2}}}}",
			"",
			`request "z": its selectors may select devices that are not zones, so what it will hold is not known`,
		},
		"any driver, no capacity of zones": {"{name: z, exactly: {deviceClassName: any, capacity: {requests: {ways: 2}}}}", "", ""},
		"alternatives that hold the same": {
			`{name: z, firstAvailable: [
				{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 3}}},
				{name: b, deviceClassName: own-zones, capacity: {requests: {cpu: 4}}},
			]}`,
			"c/z: cpu 4",
			"",
		},
		"alternatives that differ": {
			`{name: z, firstAvailable: [
				{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 3}}},
				{name: b, deviceClassName: gpu.example.com},
			]}`,
			"",
			`request "z": its alternatives "a" and "b" hold different amounts`,
		},
	} {
		shares, err := Wanted("c", claimOf(t, row.requests), known)
		if got := textOf(shares); got != row.want || fmt.Sprint(err) != row.err && !(err == nil && row.err == "") {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, row.want, row.err)
		}
	}
}

// Without a zone in sight a CPU is not split and a page has its size.
func TestWantedWithoutSteps(t *testing.T) {
	spec := claimOf(t, "{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2500m, hugepages1Gi: 1Mi}}}}")
	shares, err := Wanted("c", spec, objects{})
	if want := "c/z: cpu 3, hugepages-1Gi 1Gi"; err != nil || textOf(shares) != want {
		t.Errorf("%s, %v, want %s", textOf(shares), err, want)
	}
}

func TestStepsAreTheLargestOfOurZones(t *testing.T) {
	slice := func(driver, step string) *resourceapi.ResourceSlice {
		capacity := resourceapi.DeviceCapacity{Value: resource.MustParse("8")}
		if step != "" {
			capacity.RequestPolicy = &resourceapi.CapacityRequestPolicy{ValidRange: &resourceapi.CapacityRequestPolicyRange{Step: ptr.To(resource.MustParse(step))}}
		}
		return &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, Devices: []resourceapi.Device{{
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"cpu": capacity},
		}}}}
	}
	steps := StepsOf([]*resourceapi.ResourceSlice{slice("dra.numa", "1"), slice("dra.numa", "4"), slice("dra.numa", ""), slice("dra.cpu", "64")})
	if cpu := steps["cpu"]; len(steps) != 1 || cpu.Value() != 4 {
		t.Errorf("steps %v", steps)
	}
}

func allocated(results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: results}}
	return claim
}

func result(driver, request, cpu string) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{
		Driver: driver, Request: request, Pool: "node",
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse(cpu)},
	}
}

func TestSharesOf(t *testing.T) {
	known := objects{
		claims: map[string]*resourceapi.ResourceClaim{
			"wanted":    {Spec: claimOf(t, someZone)},
			"allocated": allocated(result("dra.numa", "z/sub", "6"), result("dra.numa", "z/sub", "2"), result("gpu", "g", "9"), result("dra.numa", "none", "0")),
			"made":      allocated(result("dra.numa", "z", "1")),
		},
		templates: map[string]*resourceapi.ResourceClaimTemplate{"template": {Spec: resourceapi.ResourceClaimTemplateSpec{Spec: claimOf(t, someZone)}}},
	}
	admin := result("dra.numa", "seen", "5")
	admin.AdminAccess = ptr.To(true)
	known.claims["allocated"].Status.Allocation.Devices.Results = append(known.claims["allocated"].Status.Allocation.Devices.Results, admin)
	shared := allocated(result("dra.numa", "z", "4"))
	shared.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{
		{
			APIGroup: "example.com",
			Resource: "jobs",
			Name:     "j",
		}, {
			Resource: "pods",
			Name:     "first",
			UID:      "1",
		}, {
			Resource: "pods",
			Name:     "second",
			UID:      "2",
		},
	}
	known.claims["shared"] = shared
	for name, row := range map[string]struct {
		entry     corev1.PodResourceClaim
		pod       string
		want, why string
	}{
		"not allocated": {
			corev1.PodResourceClaim{ResourceClaimName: ptr.To("wanted")},
			"p",
			"c/z: cpu 3, memory 1Gi",
			"",
		},
		"allocated": {
			corev1.PodResourceClaim{ResourceClaimName: ptr.To("allocated")},
			"p",
			"c/z: cpu 8",
			"",
		},
		"absent": {
			corev1.PodResourceClaim{ResourceClaimName: ptr.To("nowhere")},
			"p",
			"",
			`there is no claim "nowhere"`,
		},
		"of a template": {
			corev1.PodResourceClaim{ResourceClaimTemplateName: ptr.To("template")},
			"p",
			"c/z: cpu 3, memory 1Gi",
			"",
		},
		"of no template": {
			corev1.PodResourceClaim{ResourceClaimTemplateName: ptr.To("x")},
			"p",
			"",
			`there is no claim template "x"`,
		},
		"of a template, and made": {
			corev1.PodResourceClaim{ResourceClaimTemplateName: ptr.To("template")},
			"made",
			"c/z: cpu 1",
			"",
		},
		"shared, the first": {
			corev1.PodResourceClaim{ResourceClaimName: ptr.To("shared")},
			"first",
			"c/z: cpu 4",
			"",
		},
		"shared, the second": {
			corev1.PodResourceClaim{ResourceClaimName: ptr.To("shared")},
			"second",
			"",
			`claim "shared" counts in pod "first", which uses it as well`,
		},
		"counted by the API server": {corev1.PodResourceClaim{ResourceClaimName: ptr.To("allocated")}, "mapped", "", ""},
	} {
		row.entry.Name = "c"
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: row.pod}, Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{row.entry}}}
		switch row.pod {
		case "made":
			pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c", ResourceClaimName: ptr.To("made")}}
		case "mapped":
			pod.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "allocated"}}
		}
		shares, unresolved := SharesOf(pod, known)
		var why string
		for _, one := range unresolved {
			why = one.Why
		}
		if textOf(shares) != row.want || why != row.why {
			t.Errorf("%s: %q, %q, want %q, %q", name, textOf(shares), why, row.want, row.why)
		}
	}
}
