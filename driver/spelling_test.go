package driver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// otherDrivers have attributes that look like ours: near says dra.numa/socket, so that its
// devices can be put near ours, and far has a socket of its own.
const otherDrivers = `
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: near}
spec:
  driver: near.example.com
  nodeName: NODE
  pool: {name: NODE, generation: 1, resourceSliceCount: 1}
  devices: [{name: near-0, attributes: {dra.numa/socket: {int: 0}}}, {name: near-1, attributes: {dra.numa/socket: {int: 1}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: far}
spec:
  driver: far.example.com
  nodeName: NODE
  pool: {name: NODE, generation: 1, resourceSliceCount: 1}
  devices: [{name: far-0, attributes: {kind: {string: zone}, socket: {int: 0}}}]
`

// mixedSlices are a node with zones, caches and PCI functions, and devices of others.
func mixedSlices(t testing.TB) (published []*resourceapi.ResourceSlice) {
	t.Helper()
	divided, disk := newCacheNode(t, tenWays), pciDisk(t)
	config, machine := divided.config(), disk.machine
	config.Attached = disk.selected
	groups, err := numa.ReadResctrl(divided.groups, numa.ResctrlView{AllTasks: true})
	if err != nil {
		t.Fatal(err)
	}
	machine.Resctrl = &groups.Info
	pool := Resources(node, Devices(machine, config, nil)).Pools[node]
	for i, part := range pool.Slices {
		published = append(published, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%d-%s", i, node)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: Name, NodeName: new(node), Devices: part.Devices, SharedCounters: part.SharedCounters,
				Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool.Slices))},
			},
		})
	}
	return append(published, object.Snapshot(t, strings.ReplaceAll(otherDrivers, "NODE", node)).Slices...)
}

// asked is a request for a count of devices of a class, with capacities and a selector.
func asked(name, class string, count int, capacities, expression string) string {
	text := fmt.Sprintf("{name: %s, exactly: {deviceClassName: %s, allocationMode: ExactCount, count: %d", name, class, count)
	if capacities != "" {
		text += fmt.Sprintf(", capacity: {requests: {%s}}", capacities)
	}
	if expression != "" {
		text += fmt.Sprintf(", selectors: [{cel: {expression: '%s'}}]", expression)
	}
	return text + "}}"
}

// spellingClaims are claims by what they are about. Each is allocated on a free node, and
// gets what want says, or nothing. An error is one of a selector.
func spellingClaims() map[string]struct{ claim, want string } {
	const ours = `device.attributes["dra.numa"]`
	const zone, cache = "zone.dra.numa", "cache.dra.numa"
	const noKey = "error: no such key: "
	claim := func(constraints string, requests ...string) string {
		return fmt.Sprintf("{requests: [%s], constraints: [%s]}", strings.Join(requests, ", "), constraints)
	}
	return map[string]struct{ claim, want string }{
		"class":                   {claim("", asked("a", zone, 1, "cpu: 2, memory: 64Mi", "")), "a=numa-0 cpu=2 hugepages2Mi=0 memory=64Mi"},
		"selector":                {claim("", asked("a", zone, 1, "cpu: 2", ours+`.kind == "zone" && `+ours+`.socket == 1`)), "a=numa-2 cpu=2 hugepages2Mi=0 memory=0"},
		"optional":                {claim("", asked("a", zone, 1, "cpu: 2", ours+`.?socket.orValue(-1) == 1`)), "a=numa-2 cpu=2 hugepages2Mi=0 memory=0"},
		"key in a map":            {claim("", asked("a", zone, 1, "cpu: 2", `"l3" in `+ours+` && `+ours+`["exclusivity"] == "kernel"`)), "a=numa-0 cpu=2 hugepages2Mi=0 memory=0"},
		"has":                     {claim("", asked("a", zone, 1, "", `!has(`+ours+`.socket)`)), ""},
		"no such domain":          {claim("", asked("a", zone, 1, "cpu: 2", `device.attributes["kind"].kind == "zone"`)), noKey + "kind"},
		"missing":                 {claim("", asked("a", zone, 1, "cpu: 2", ours+`.nothing == 1`)), noKey + "nothing"},
		"capacity in a selector":  {claim("", asked("a", zone, 1, "", `device.capacity["dra.numa"].cpu.compareTo(quantity("4")) >= 0`)), "a=numa-1 cpu=0 hugepages2Mi=0 memory=0"},
		"rounded":                 {claim("", asked("a", zone, 1, "cpu: 1, memory: 1", "")), "a=numa-0 cpu=2 hugepages2Mi=0 memory=1Mi"},
		"too many CPUs":           {claim("", asked("a", zone, 1, "cpu: 1000", "")), ""},
		"match l3":                {claim("{matchAttribute: dra.numa/l3}", asked("a", zone, 1, "cpu: 2", ours+".socket == 1"), asked("b", cache, 1, "ways: 2", "")), "a=numa-2 cpu=2 hugepages2Mi=0 memory=0 b=cache-2-guaranteed bandwidthPercent=100 classes=1 ways=2"},
		"match l3, elsewhere":     {claim("{matchAttribute: dra.numa/l3}", asked("a", zone, 1, "cpu: 2", ours+".socket == 0"), asked("b", cache, 1, "ways: 2", ours+".l3 == 1")), "a=numa-1 cpu=2 hugepages2Mi=0 memory=0 b=cache-1-guaranteed bandwidthPercent=100 classes=1 ways=2"},
		"match pool":              {claim("{matchAttribute: dra.numa/pool}", asked("a", cache, 2, "ways: 2", "")), "a=cache-0-guaranteed bandwidthPercent=100 classes=1 ways=2 a=cache-1-guaranteed bandwidthPercent=100 classes=1 ways=2"},
		"match socket":            {claim("{matchAttribute: dra.numa/socket}", asked("a", "nic.dra.numa", 1, "", ours+`.?interface.orValue("") == "ens1"`), asked("b", zone, 1, "cpu: 2", "")), "a=nic-0001-31-00-0 b=numa-2 cpu=2 hugepages2Mi=0 memory=0"},
		"match what is missing":   {claim("{matchAttribute: dra.numa/nothing}", asked("a", zone, 1, "cpu: 2", "")), ""},
		"match in another domain": {claim("{matchAttribute: other.example.com/socket}", asked("a", zone, 1, "cpu: 2", "")), ""},
		"match another driver":    {claim("{matchAttribute: dra.numa/socket}", asked("a", zone, 1, "cpu: 2", ours+".socket == 1"), asked("b", "near", 1, "", "")), "a=numa-2 cpu=2 hugepages2Mi=0 memory=0 b=near-1"},
		"match one with its own":  {claim("{matchAttribute: dra.numa/socket}", asked("a", zone, 1, "cpu: 2", ""), asked("b", "far", 1, "", "")), ""},
		"distinct socket":         {claim("{distinctAttribute: dra.numa/socket}", asked("a", zone, 2, "cpu: 2", "")), "a=numa-0 cpu=2 hugepages2Mi=0 memory=0 a=numa-2 cpu=2 hugepages2Mi=0 memory=0"},
		"distinct, three of two":  {claim("{distinctAttribute: dra.numa/socket}", asked("a", zone, 3, "", "")), ""},
		"distinct groups":         {claim("{distinctAttribute: dra.numa/iommuGroup}", asked("a", "nvme.dra.numa", 2, "", ours+".namespaces == 1")), "a=nvme-0001-21-00-0 a=nvme-0001-23-00-0"},
		"three requests":          {claim("{requests: [a, b], matchAttribute: dra.numa/l3}, {requests: [a, c], matchAttribute: dra.numa/socket}", asked("a", zone, 1, "cpu: 2", ""), asked("b", "silver.dra.numa", 1, "", ""), asked("c", "nic.dra.numa", 1, "", "")), "a=numa-0 cpu=2 hugepages2Mi=0 memory=0 b=cache-0-besteffort bandwidthPercent=100 classes=1 ways=1 c=nic-0000-21-00-0"},
	}
}

// allocatedAlone returns what a claim gets of free slices, or what stops the scheduler.
func allocatedAlone(t *testing.T, published []*resourceapi.ResourceSlice, classes inventory.Classes, claim string) string {
	t.Helper()
	features := allocation.DefaultFeatures()
	allocator, err := allocation.NewAllocator(t.Context(), features, allocation.NewState(), classes, allocation.NewSlices(published), allocation.NewCache(10, features))
	if err != nil {
		t.Fatal(err)
	}
	results, err := allocator.Allocate(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourceapi.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default"},
		Spec:       resourceapi.ResourceClaimSpec{Devices: *object.Parse[resourceapi.DeviceClaim](t, claim)},
	}})
	if err != nil {
		_, what, _ := strings.Cut(err.Error(), "CEL runtime error: ")
		what, _, _ = strings.Cut(what, ".")
		return "error: " + what
	}
	var words []string
	for _, result := range results {
		for _, given := range result.Devices.Results {
			words = append(words, given.Request+"="+given.Device)
			for _, name := range slices.Sorted(maps.Keys(given.ConsumedCapacity)) {
				amount := given.ConsumedCapacity[name]
				words = append(words, fmt.Sprintf("%s=%s", name, amount.String()))
			}
		}
	}
	return strings.Join(words, " ")
}

// The scheduler of Kubernetes 1.37 gives a claim the same, whether devices have the domain
// of the driver in the names of its attributes or not.
func TestSchedulerAllocatesAlikeInBothSpellings(t *testing.T) {
	published, classes := mixedSlices(t), inventory.Classes(object.Classes(t))
	for name, expression := range map[string]string{"near": `device.driver == "near.example.com"`, "far": `device.driver == "far.example.com"`} {
		classes[name] = object.Snapshot(t, object.ClassText(name, expression)).Classes[0]
	}
	if names := object.OwnDomain(published); len(names) > 0 {
		t.Errorf("the driver publishes names with its own domain, which libraries of Kubernetes 1.38 refuse: %s", names)
	}
	older := object.WithDomain(published)
	if names := object.OwnDomain(older); len(names) == 0 {
		t.Error("no name has the driver's domain")
	}
	for what, row := range spellingClaims() {
		if got := allocatedAlone(t, published, classes, row.claim); got != row.want {
			t.Errorf("%s: %q, want %q", what, got, row.want)
		}
		if got := allocatedAlone(t, older, classes, row.claim); got != row.want {
			t.Errorf("%s, with the domain: %q, want %q", what, got, row.want)
		}
	}
}
