package accounting

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
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
		"cache.dra.numa":  `device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "cache"`,
		"gpu.example.com": `device.driver == "gpu.example.com"`,
		"any":             "true",
		"optional":        `device.driver == "dra.numa" && device.attributes["dra.numa"].?kind.orValue("") == "zone"`,
		"swapped":         `"dra.numa" == device.driver && "zone" == device.attributes["dra.numa"].kind`,
		"performance":     `device.driver == "dra.numa" && device.attributes["dra.numa"].?coreType.orValue("") == "performance"`,
		"ours":            `device.driver == "dra.numa"`,
		"large":           `device.driver == "dra.numa" && device.capacity["dra.numa"].cpu.isGreaterThan(quantity("20")) && device.capacity["dra.numa"].cpu.isLessThan(quantity("200"))`,
		"broken":          "device.driver",
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
	return *object.Parse[resourceapi.ResourceClaimSpec](t, "devices: {requests: ["+requests+"]}")
}

// one is the request for a device of a class, in YAML, with more fields of it.
func one(class string, fields ...string) string {
	return "{name: z, exactly: {" + strings.Join(append([]string{"deviceClassName: " + class}, fields...), ", ") + "}}"
}

// firstOf is the request for the first of alternatives that there is, in YAML.
func firstOf(alternatives ...string) string {
	return "{name: z, firstAvailable: [" + strings.Join(alternatives, ", ") + "]}"
}

// amounts are the capacities of a request.
func amounts(list string) string { return "capacity: {requests: {" + list + "}}" }

// selecting are the selectors of a request.
func selecting(expression string) string {
	return "selectors: [{cel: {expression: '" + expression + "'}}]"
}

func textOf(shares []Share) string {
	var parts []string
	for _, share := range shares {
		parts = append(parts, fmt.Sprintf("%s/%s: %s", share.Claim, share.Request, Text(share.Amounts)))
	}
	return strings.Join(parts, "; ")
}

// unclear is what is said of a request that may get zones or other devices.
const unclear = `its selectors may select zones or other devices, so what it will hold is not known: begin one with device.driver == "NAME" &&, where NAME is the driver of the devices`

// hidden is a selector that no made-up zone matches.
const hidden = `device.attributes["dra.numa"].?threadsPerCore.orValue(0) * 5 == 10`

var someZone = one("zone.dra.numa", amounts("cpu: 3, memory: 1Gi"))

func TestWanted(t *testing.T) {
	known := objects{steps: Steps{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Mi")}}
	for name, row := range map[string]struct{ requests, want, err string }{
		"rounded to the step":                {someZone, "c/z: cpu 4, memory 1Gi", ""},
		"fraction of a CPU":                  {one("own-zones", amounts("cpu: 2500m")), "c/z: cpu 4", ""},
		"hugepages":                          {one("zone.dra.numa", amounts("hugepages2Mi: 3Mi, cpu: 0")), "c/z: hugepages-2Mi 4Mi", ""},
		"count":                              {one("zone.dra.numa", "count: 2", amounts("cpu: 2")), "c/z: cpu 4", ""},
		"no capacity":                        {one("zone.dra.numa"), "", ""},
		"key with the driver's name":         {one("zone.dra.numa", amounts("dra.numa/cpu: 2")), "c/z: cpu 2", ""},
		"unknown key":                        {one("zone.dra.numa", amounts("dra.cpu/cpu: 2")), "", ""},
		"admin access":                       {one("zone.dra.numa", "adminAccess: true", amounts("cpu: 2")), "", ""},
		"other kind":                         {one("gpu.dra.numa", amounts("memory: 2")), "", ""},
		"other driver":                       {one("gpu.example.com", amounts("memory: 2")), "", ""},
		"optional kind":                      {one("optional", amounts("cpu: 2")), "c/z: cpu 2", ""},
		"swapped operands":                   {one("swapped", amounts("cpu: 2")), "c/z: cpu 2", ""},
		"by core type":                       {one("performance", amounts("cpu: 2")), "c/z: cpu 2", ""},
		"only zones of the driver have CPUs": {one("ours", amounts("cpu: 2")), "c/z: cpu 2", ""},
		"any driver, no capacity of zones":   {one("any", amounts("ways: 2")), "", ""},
		"caches":                             {one("cache.dra.numa", amounts("ways: 4, bandwidthPercent: 40")), "", ""},
		"CPUs of caches":                     {one("cache.dra.numa", amounts("cpu: 4")), "", ""},
		"CPUs and a cache":                   {someZone + "," + strings.Replace(one("cache.dra.numa", amounts("ways: 4")), "name: z", "name: cache", 1), "c/z: cpu 4, memory 1Gi", ""},
		"zones or caches, by capacity":       {one("ours", "allocationMode: All", amounts("ways: 4")), "", ""},
		"own selectors": {
			one("any", amounts("cpu: 2"), selecting(`device.driver == "dra.numa" && device.attributes["dra.numa"].kind == "zone"`)),
			"c/z: cpu 2", "",
		},
		"hidden in a class of zones": {one("zone.dra.numa", amounts("cpu: 2"), selecting(hidden)), "c/z: cpu 2", ""},
		"hidden zones of the driver": {one("any", amounts("cpu: 2"), selecting(`device.driver == "dra.numa" && `+hidden)), "c/z: cpu 2", ""},
		"hidden":                     {one("any", amounts("cpu: 2"), selecting(hidden)), "", `request "z": ` + unclear},
		"hidden, without amounts":    {one("any", amounts("ways: 2, cpu: 0"), selecting(hidden)), "", ""},
		"a class with a range":       {one("large", amounts("cpu: 2")), "c/z: cpu 2", ""},
		"broken":                     {one("zone.dra.numa", amounts("cpu: 2"), selecting("nonsense")), "", `request "z": selector 0: it does not compile`},
		"a broken class":             {one("broken", amounts("cpu: 2")), "", `request "z": selector 0 of its class: it does not compile`},
		"most devices":               {one("zone.dra.numa", "count: 32", amounts("cpu: 2")), "c/z: cpu 64", ""},
		"more devices":               {one("zone.dra.numa", "count: 33", amounts("cpu: 2")), "", `request "z": count 33: a claim can have at most 32 devices`},
		"more GPUs":                  {one("gpu.dra.numa", "count: 33", amounts("cpu: 2")), "", ""},
		"every kind but zones": {
			one("no-zone", amounts("cpu: 2"), selecting(`device.attributes["dra.numa"].kind != "isolated"`)), "", "",
		},
		"alternatives that hold the same": {
			firstOf("{name: a, deviceClassName: zone.dra.numa, "+amounts("cpu: 3")+"}", "{name: b, deviceClassName: own-zones, "+amounts("cpu: 4")+"}"),
			"c/z: cpu 4", "",
		},
		"alternatives that differ": {
			firstOf("{name: a, deviceClassName: zone.dra.numa, "+amounts("cpu: 3")+"}", "{name: b, deviceClassName: gpu.example.com}"),
			"", `request "z": its alternatives "a" and "b" hold different amounts`,
		},
		"all of them": {
			one("zone.dra.numa", "allocationMode: All", amounts("cpu: 2")),
			"", `request "z": allocationMode All: the number of zones depends on the node`,
		},
		"unknown class": {one("fast"), "", `request "z": there is no device class "fast"`},
		"too much": {
			one("zone.dra.numa", amounts("memory: 9999999999999999999")),
			"", `request "z": memory 9999999999999999999: no zone has that much`,
		},
		"any driver": {
			one("any", amounts("cpu: 2")),
			"", `request "z": ` + unclear,
		},
	} {
		shares, err := wanted("c", claimOf(t, row.requests), known, exact)
		if got := textOf(shares); got != row.want || fmt.Sprint(err) != row.err && !(err == nil && row.err == "") {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, row.want, row.err)
		}
	}
}

// The most that a claim may hold does not depend on the scheduler, nor on other drivers.
func TestMostOfAClaim(t *testing.T) {
	const zone = "deviceClassName: zone.dra.numa, capacity: {requests: "
	for name, row := range map[string]struct{ requests, want, err string }{
		"certain": {"{name: z, exactly: {" + zone + "{cpu: 4}}}}", "c/z: cpu 4", ""},
		"the largest of each resource": {
			"{name: z, firstAvailable: [{name: a, " + zone + "{cpu: 8, memory: 1Gi}}}, {name: b, " + zone + "{cpu: 4, memory: 2Gi, hugepages2Mi: 2Mi}}}]}",
			"c/z: cpu 8, hugepages-2Mi 2Mi, memory 2Gi", "",
		},
		"the first alternative is another driver's": {
			"{name: z, firstAvailable: [{name: a, deviceClassName: gpu.example.com}, {name: b, " + zone + "{cpu: 4}}}]}", "c/z: cpu 4", "",
		},
		"a count of the smaller alternative": {
			"{name: z, firstAvailable: [{name: a, " + zone + "{cpu: 6}}}, {name: b, count: 2, " + zone + "{cpu: 4}}}]}", "c/z: cpu 8", "",
		},
		"an alternative with a count that no claim can have": {
			"{name: z, firstAvailable: [{name: a, count: 2305843009213693952, " + zone + "{cpu: 8}}}, {name: b, " + zone + "{cpu: 4}}}]}",
			"", `request "z": count 2305843009213693952: a claim can have at most 32 devices`,
		},
		"unknown class without amounts": {"{name: z, exactly: {deviceClassName: fast}}", "", ""},
		"unknown class": {
			"{name: z, exactly: {deviceClassName: fast, capacity: {requests: {cpu: 2}}}}", "", `request "z": there is no device class "fast"`,
		},
		"unknown class in an alternative": {
			"{name: z, firstAvailable: [{name: a, " + zone + "{cpu: 8}}}, {name: b, deviceClassName: fast, capacity: {requests: {cpu: 2}}}]}",
			"", `request "z": there is no device class "fast"`,
		},
		"all of them": {
			"{name: z, exactly: {allocationMode: All, " + zone + "{cpu: 2}}}}",
			"", `request "z": allocationMode All: the number of zones depends on the node`,
		},
		"no number": {
			"{name: z, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: " + object.EndlessAmount + "}}}}",
			"",
			`request "z": cpu ` + object.EndlessAmount + `: no zone has that much`,
		},
		"any driver": {
			"{name: z, exactly: {deviceClassName: any, capacity: {requests: {cpu: 2}}}}",
			"", `request "z": ` + unclear,
		},
	} {
		shares, err := wanted("c", claimOf(t, row.requests), objects{}, most)
		if got := textOf(shares); got != row.want || fmt.Sprint(err) != row.err && !(err == nil && row.err == "") {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, row.want, row.err)
		}
	}
}

// Without a zone in sight a CPU is not split and a page has its size.
func TestWantedWithoutSteps(t *testing.T) {
	spec := claimOf(t, one("zone.dra.numa", amounts("cpu: 2500m, hugepages1Gi: 1Mi")))
	shares, err := wanted("c", spec, objects{}, exact)
	if want := "c/z: cpu 3, hugepages-1Gi 1Gi"; err != nil || textOf(shares) != want {
		t.Errorf("%s, %v, want %s", textOf(shares), err, want)
	}
}

func TestRoundingSaturates(t *testing.T) {
	for name, row := range map[string]struct {
		steps Steps
		key   resourceapi.QualifiedName
	}{
		"a step":                {Steps{"cpu": resource.MustParse("9223372036854775807")}, "cpu"},
		"a step of many digits": {Steps{"cpu": resource.MustParse("1e30")}, "cpu"},
		"a page":                {nil, "hugepages9223372036854775807"},
		"a page of many digits": {nil, "hugepages1e30"},
		"a page of 8Ei":         {nil, "hugepages8Ei"},
	} {
		if got := row.steps.round(row.key, resource.MustParse("5")); got.Value() != mostNumber {
			t.Errorf("%s: %s", name, got.String())
		}
	}
}

func TestWaysOfACacheAreNoShare(t *testing.T) {
	cache := result("dra.numa", "cache", "1")
	cache.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{
		"ways": resource.MustParse("4"), "classes": resource.MustParse("1"), "bandwidthPercent": resource.MustParse("40"),
	}
	if got := textOf(Held("c", allocated(result("dra.numa", "cpus", "8"), cache))); got != "c/cpus: cpu 8" {
		t.Errorf("the claim holds %s", got)
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
	cache := slice("dra.numa", "2")
	cache.Spec.Devices[0].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": {StringValue: ptr.To("cache")}}
	cache.Spec.Devices[0].Capacity["ways"] = cache.Spec.Devices[0].Capacity["cpu"]
	all := []*resourceapi.ResourceSlice{cache, slice("dra.numa", "1"), slice("dra.numa", "4"), slice("dra.numa", ""), slice("dra.cpu", "64")}
	for what, all := range map[string][]*resourceapi.ResourceSlice{"published": all, "with the domain, by older builds": object.WithDomain(all)} {
		if steps := StepsOf(all); len(steps) != 1 || ptr.To(steps["cpu"]).Value() != 4 {
			t.Errorf("%s: steps %v", what, steps)
		}
	}
}

// zone is a slice with a device that has a value and a step of each capacity.
func zone(t *testing.T, name string, capacity string, mapped bool) *resourceapi.ResourceSlice {
	t.Helper()
	slice := object.Parse[resourceapi.ResourceSlice](t, `{spec: {driver: dra.numa, devices: [{name: `+name+`, capacity: {`+capacity+`}}]}}`)
	if mapped {
		slice.Spec.Devices[0].NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {}}
	}
	return slice
}

// A node whose daemon was taken over publishes what it likes.
func TestOneNodeDoesNotRaiseTheRequestsOfAll(t *testing.T) {
	step := func(name, value, step string) string {
		return fmt.Sprintf(`%s: {value: "%s", requestPolicy: {validRange: {min: "0", step: "%s"}}}, `, name, value, step)
	}
	others := zone(t, "numa-0", step("cpu", "16", "2")+step("memory", "4Gi", "1Mi")+step("hugepages2Mi", "64Mi", "2Mi"), false)
	for name, row := range map[string]struct{ capacity, want string }{
		"nothing":           {"", "c/z: cpu 4, hugepages-2Mi 2Mi, memory 3Mi"},
		"more than it has":  {step("cpu", "4", "1M") + step("memory", "1Gi", "1Ti") + step("hugepages2Mi", "2Mi", "2Gi"), "c/z: cpu 4, hugepages-2Mi 2Mi, memory 3Mi"},
		"a large zone":      {step("cpu", "1M", "1M") + step("memory", "1Pi", "1Ti") + step("hugepages2Mi", "2Pi", "2Gi"), "c/z: cpu 8, hugepages-2Mi 2Mi, memory 3Mi"},
		"an endless amount": {step("cpu", object.EndlessAmount, object.EndlessAmount), "c/z: cpu 4, hugepages-2Mi 2Mi, memory 3Mi"},
	} {
		known := objects{steps: StepsOf([]*resourceapi.ResourceSlice{others, zone(t, "numa-0", row.capacity, false)})}
		shares, err := wanted("c", claimOf(t, one("zone.dra.numa", amounts("cpu: 3, memory: 3Mi, hugepages2Mi: 2Mi"))), known, most)
		if got := textOf(shares); err != nil || got != row.want {
			t.Errorf("with a node that publishes %s: %s, %v, want %s", name, got, err, row.want)
		}
	}
}

func TestServerCountsWhenEveryZoneIsMapped(t *testing.T) {
	const cpus = "cpu: {value: 4}"
	mapped, unmapped, empty := zone(t, "numa-0", cpus, true), zone(t, "numa-1", cpus, false), zone(t, "numa-2", "", false)
	cache, other := unmapped.DeepCopy(), unmapped.DeepCopy()
	cache.Spec.Devices[0].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": {StringValue: ptr.To("cache")}}
	other.Spec.Driver = "dra.cpu"
	for name, row := range map[string]struct {
		slices []*resourceapi.ResourceSlice
		want   bool
	}{
		"no zones":                          {nil, false},
		"no zone is mapped":                 {[]*resourceapi.ResourceSlice{unmapped}, false},
		"one node of two":                   {[]*resourceapi.ResourceSlice{mapped, unmapped}, false},
		"all zones":                         {[]*resourceapi.ResourceSlice{mapped, mapped}, true},
		"all zones that have something":     {[]*resourceapi.ResourceSlice{empty, mapped}, true},
		"all zones, and others' and caches": {[]*resourceapi.ResourceSlice{cache, mapped, other}, true},
	} {
		if got := ServerCounts(row.slices); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
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
		{APIGroup: "example.com", Resource: "jobs", Name: "j"},
		{Resource: "pods", Name: "first", UID: "1"},
		{Resource: "pods", Name: "second", UID: "2"},
	}
	known.claims["shared"] = shared
	claim := func(name string) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: "c", ResourceClaimName: &name}
	}
	template := func(name string) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: "c", ResourceClaimTemplateName: &name}
	}
	for name, row := range map[string]struct {
		entry          corev1.PodResourceClaim
		pod, want, why string
	}{
		"not allocated":             {claim("wanted"), "p", "c/z: cpu 3, memory 1Gi", ""},
		"allocated":                 {claim("allocated"), "p", "c/z: cpu 8", ""},
		"absent":                    {claim("nowhere"), "p", "", `there is no claim "nowhere"`},
		"of a template":             {template("template"), "p", "c/z: cpu 3, memory 1Gi", ""},
		"of no template":            {template("x"), "p", "", `there is no claim template "x"`},
		"of a template, and made":   {template("template"), "made", "c/z: cpu 1", ""},
		"shared, the first":         {claim("shared"), "first", "c/z: cpu 4", ""},
		"shared, the second":        {claim("shared"), "second", "", `claim "shared" counts in pod "first", which uses it as well`},
		"counted by the API server": {claim("allocated"), "mapped", "", ""},
	} {
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

// A claim counts in each pod that names it. It may be allocated again for a pod that it is
// not reserved for, with another alternative.
func TestMostOf(t *testing.T) {
	const alternatives = `{name: z, firstAvailable: [
		{name: a, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 8}}},
		{name: b, deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 4}}}]}`
	claim := allocated(result("dra.numa", "z/b", "4"))
	claim.Spec = claimOf(t, alternatives)
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "first", UID: "1"}}
	known := objects{
		claims:    map[string]*resourceapi.ResourceClaim{"shared": claim, "wanted": {Spec: claimOf(t, someZone)}},
		templates: map[string]*resourceapi.ResourceClaimTemplate{"template": {Spec: resourceapi.ResourceClaimTemplateSpec{Spec: claimOf(t, alternatives)}}},
	}
	entries := map[string]corev1.PodResourceClaim{
		"wanted":   {Name: "c", ResourceClaimName: ptr.To("wanted")},
		"shared":   {Name: "c", ResourceClaimName: ptr.To("shared")},
		"template": {Name: "c", ResourceClaimTemplateName: ptr.To("template")},
		"nowhere":  {Name: "c", ResourceClaimName: ptr.To("nowhere")},
		// A PodGroup may have a claim that was made of another template.
		"group": {Name: "c", ResourceClaimTemplateName: ptr.To("template")},
	}
	for _, row := range []struct{ entry, uid, want, why string }{
		{"group", "9", "c/z: cpu 8", `the pod belongs to PodGroup "g", which may have a claim for this entry already: name a claim instead of a template`},
		{"wanted", "9", "c/z: cpu 3, memory 1Gi", ""},
		{"shared", "1", "c/z: cpu 4", ""},
		{"shared", "2", "c/z: cpu 8", ""},
		{"shared", "", "c/z: cpu 8", ""},
		{"template", "9", "c/z: cpu 8", ""},
		{"nowhere", "9", "", `there is no claim "nowhere"`},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{entries[row.entry]}}}
		pod.Name, pod.UID = "first", types.UID(row.uid)
		if row.entry == "group" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
		}
		shares, unresolved := MostOf(pod, known)
		why := ""
		if len(unresolved) > 0 {
			why = unresolved[0].Why
		}
		if textOf(shares) != row.want || why != row.why {
			t.Errorf("%s for pod %q: %q, %q, want %q, %q", row.entry, row.uid, textOf(shares), why, row.want, row.why)
		}
	}
}
