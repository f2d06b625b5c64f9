package holdings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// brief is a node as lines that are easy to compare.
func brief(c holdings.Cluster, name string) (lines []string) {
	only, _ := c.Only(name)
	for _, node := range only.Nodes {
		for _, at := range node.NUMANodes {
			for _, device := range at.Devices {
				lines = append(lines, briefly(device)+" on "+string('0'+rune(at.ID)))
			}
		}
		for _, device := range node.Devices {
			lines = append(lines, briefly(device)+" on ?")
		}
		for _, problem := range node.Problems {
			lines = append(lines, "! "+problem)
		}
	}
	return lines
}

func briefly(device holdings.Device) string {
	text := device.Name + " " + string(device.State)
	if device.Reason != "" {
		text += " (" + device.Reason + ")"
	}
	for _, r := range device.Resources {
		total := "?"
		if r.Total != nil {
			total = r.Free.String() + "/" + r.Total.String()
		}
		text += " " + r.Name + "=" + r.Held.String() + "," + total
	}
	for _, share := range device.Shares {
		text += " " + share.Claim + "/" + share.Request
		switch {
		case share.Admin:
			text += "(admin)"
		case share.CPUs != nil:
			text += "(" + share.CPUs.String() + ")"
		case !share.Reported:
			text += "(not reported)"
		}
	}
	return text
}

const network = "dra.net"

// zone is a device of this driver with 8 CPUs and 16 GiB.
func zone(name string, numaNode int64) resourceapi.Device {
	return resourceapi.Device{
		Name: name, AllowMultipleAllocations: ptr.To(true),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"kind": {StringValue: ptr.To("zone")}, "resource.kubernetes.io/numaNode": {IntValue: &numaNode},
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"cpu": {Value: resource.MustParse("8")}, "memory": {Value: resource.MustParse("16Gi")},
		},
	}
}

// Each row is one thing that a snapshot can say.
func TestHoldings(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(*occupied.Cluster)
		want []string
	}{
		"nothing is held": {
			func(*occupied.Cluster) {},
			[]string{"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0"},
		},
		"prepared": {
			func(c *occupied.Cluster) {
				c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=4,memory=1Gi", CPUs: ptr.To("4-7"), Mems: "0"})
			},
			[]string{"numa-0 shared cpu=4,4/8 memory=1Gi,15Gi/16Gi d/a/r(4-7) on 0"},
		},
		"allocated, not prepared": {
			func(c *occupied.Cluster) {
				c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=4"})
			},
			[]string{"numa-0 shared cpu=4,4/8 memory=0,16Gi/16Gi d/a/r(not reported) on 0"},
		},
		"two shares of one device, one of them not reported": {
			func(c *occupied.Cluster) {
				claim := c.AddClaim("d/a",
					occupied.Share{
						Request: "r",
						Node:    "n",
						Device:  "numa-0",
						Amounts: "cpu=2",
						CPUs:    ptr.To("2-3"),
						Mems:    "0",
					},
					occupied.Share{Request: "s", Node: "n", Device: "numa-0", Amounts: "cpu=4", CPUs: ptr.To("4-7"), Mems: "0"})
				claim.Status.Devices = claim.Status.Devices[1:]
			},
			[]string{"numa-0 shared cpu=6,2/8 memory=0,16Gi/16Gi d/a/r(not reported) d/a/s(4-7) on 0"},
		},
		"status data of another program": {
			func(c *occupied.Cluster) {
				claim := c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=4", CPUs: ptr.To("4-7")})
				claim.Status.Devices[0].Data = &runtime.RawExtension{Raw: []byte(`{"cpus":"all"}`)}
			},
			[]string{"numa-0 shared cpu=4,4/8 memory=0,16Gi/16Gi d/a/r on 0"},
		},
		"attributes and status data of a newer driver": {
			func(c *occupied.Cluster) {
				c.Slices[0].Spec.Devices[0].Attributes["more"] = resourceapi.DeviceAttribute{StringValue: ptr.To("x")}
				claim := c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=4", CPUs: ptr.To("4-7")})
				claim.Status.Devices[0].Data = &runtime.RawExtension{Raw: []byte(`{"cpus":"4-7","mems":"","more":[1]}`)}
			},
			[]string{"numa-0 shared cpu=4,4/8 memory=0,16Gi/16Gi d/a/r(4-7) on 0"},
		},
		"admin access holds nothing": {
			func(c *occupied.Cluster) {
				c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=8", Admin: true})
			},
			[]string{"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi d/a/r(admin) on 0"},
		},
		"more is held than there is": {
			func(c *occupied.Cluster) {
				c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=12"})
			},
			[]string{
				"numa-0 shared cpu=12,0/8 memory=0,16Gi/16Gi d/a/r(not reported) on 0",
				"! claims hold 12 cpu of numa-0, which has only 8",
			},
		},
		"the slices of the driver are gone": {
			func(c *occupied.Cluster) {
				c.Slices = nil
				c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", Amounts: "cpu=4", CPUs: ptr.To("4-7"), Mems: "0"})
				c.AddClaim("d/b", occupied.Share{Request: "r", Node: "n", Device: "numa-1", Amounts: "cpu=4"})
			},
			[]string{
				"numa-0 unpublished cpu=4,? d/a/r(4-7) on 0", "numa-1 unpublished cpu=4,? d/b/r(not reported) on ?",
				"! driver dra.numa publishes nothing on this node",
				"! claims hold numa-0 of driver dra.numa, which is in no ResourceSlice", "! claims hold numa-1 of driver dra.numa, which is in no ResourceSlice",
			},
		},
		"a slice of the pool is missing": {
			func(c *occupied.Cluster) { c.Slices[0].Spec.Pool.ResourceSliceCount = 2 },
			[]string{
				"numa-0 blocked (its pool is incomplete) cpu=0,8/8 memory=0,16Gi/16Gi on 0",
				"! pool n of driver dra.numa is incomplete: 1 of 2 ResourceSlices exist, so the scheduler allocates no device of it",
			},
		},
		"an older generation counts no more": {
			func(c *occupied.Cluster) {
				old := c.AddSlice("n", driver.Name, zone("numa-0", 0), zone("numa-7", 7))
				old.Spec.Pool.Generation = 0
			},
			[]string{"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0"},
		},
		"devices of another driver": {
			func(c *occupied.Cluster) {
				eth := zone("eth0", 0)
				eth.AllowMultipleAllocations = nil
				c.AddSlice("n", network, eth, resourceapi.Device{Name: "eth1"}, resourceapi.Device{
					Name:       "eth2",
					Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"resource.kubernetes.io/numaNode": {IntValues: []int64{0, 1}}},
				})
				c.AddClaim("d/a", occupied.Share{Request: "r", Driver: network, Node: "n", Device: "eth1"})
			},
			[]string{
				"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0",
				"eth0 free on 0",
				"eth1 held d/a/r(not reported) on ?",
				"eth2 free on ?",
			},
		},
		"shared counters": {
			func(c *occupied.Cluster) {
				consumes := func(set, amount string) []resourceapi.DeviceCounterConsumption {
					return []resourceapi.DeviceCounterConsumption{{CounterSet: set, Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse(amount)}}}}
				}
				slice := c.AddSlice("n", network,
					resourceapi.Device{
						Name:             "whole",
						ConsumesCounters: consumes("card", "40Gi"),
					}, resourceapi.Device{
						Name:             "half-0",
						ConsumesCounters: consumes("card", "20Gi"),
					},
					resourceapi.Device{Name: "half-1", ConsumesCounters: consumes("card", "20Gi")}, resourceapi.Device{Name: "other", ConsumesCounters: consumes("lost", "1")})
				slice.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"memory": {Value: resource.MustParse("40Gi")}}}}
				c.AddClaim("d/a", occupied.Share{Request: "r", Driver: network, Node: "n", Device: "half-0"})
			},
			[]string{
				"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0", "half-0 held d/a/r(not reported) on ?", "half-1 free on ?",
				"other blocked (counter memory of lost is not published) on ?", "whole blocked (counter memory of card has only 20Gi left, and the device needs 40Gi) on ?",
			},
		},
		"taints of slices and of rules": {
			func(c *occupied.Cluster) {
				c.Slices[0].Spec.Devices[0].Taints = []resourceapi.DeviceTaint{{Key: "dra.numa/fault", Value: "x", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
				c.TaintRules = []*resourceapi.DeviceTaintRule{
					{ObjectMeta: metav1.ObjectMeta{Name: "drain"}, Spec: resourceapi.DeviceTaintRuleSpec{
						DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: ptr.To("n")}, Taint: resourceapi.DeviceTaint{Key: "drain", Effect: resourceapi.DeviceTaintEffectNoExecute},
					}},
					{ObjectMeta: metav1.ObjectMeta{Name: "nothing"}},
					{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: resourceapi.DeviceTaintRuleSpec{
						DeviceSelector: &resourceapi.DeviceTaintSelector{Pool: ptr.To("n")}, Taint: resourceapi.DeviceTaint{Key: "try", Effect: resourceapi.DeviceTaintEffectNone},
					}},
				}
			},
			[]string{
				"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0", "! numa-0 is tainted: dra.numa/fault=x:NoSchedule",
				"! numa-0 is tainted: drain:NoExecute by DeviceTaintRule drain",
			},
		},
		"a node that is not well": {
			func(c *occupied.Cluster) {
				c.Nodes[0].Spec.Unschedulable = true
				c.Nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown"}}
			},
			[]string{
				"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0",
				"! the Node is not Ready: NodeStatusUnknown",
				"! the Node is cordoned",
			},
		},
		"a Node object that is missing": {
			func(c *occupied.Cluster) { c.Nodes[0].Name = "m" },
			[]string{"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0", "! there is no Node object of this name"},
		},
		"no Node objects at all": { // files of slices and claims only
			func(c *occupied.Cluster) { c.Nodes = nil },
			[]string{"numa-0 free cpu=0,8/8 memory=0,16Gi/16Gi on 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := occupied.New(t)
			c.AddNode("n")
			c.AddSlice("n", driver.Name, zone("numa-0", 0))
			tc.fill(c)
			if diff := cmp.Diff(tc.want, brief(holdings.Of(&c.Snapshot), "n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDevicesOfNoOneNodeAreElsewhere(t *testing.T) {
	c := occupied.New(t)
	c.AddNode("n")
	slice := c.AddSlice("n", network, resourceapi.Device{Name: "far"})
	slice.Spec.NodeName, slice.Spec.AllNodes = nil, ptr.To(true)
	each := c.AddSlice("m", network, resourceapi.Device{Name: "near", NodeName: ptr.To("n")})
	each.Spec.NodeName, each.Spec.PerDeviceNodeSelection = nil, ptr.To(true)
	got := holdings.Of(&c.Snapshot)
	if len(got.Elsewhere) != 1 || got.Elsewhere[0].Name != "far" || len(got.Nodes) != 1 || briefly(got.Nodes[0].Devices[0]) != "near free" {
		t.Errorf("elsewhere %+v, nodes %+v", got.Elsewhere, got.Nodes)
	}
}

// A zone of several NUMA nodes is beside them, and its list is text.
func TestZoneOfSeveralNUMANodesIsBesideThem(t *testing.T) {
	const name = "resource.kubernetes.io/numaNode"
	c := occupied.New(t)
	c.AddNode("n")
	socket := zone("socket-0", 0)
	socket.Attributes[name] = resourceapi.DeviceAttribute{IntValues: []int64{0, 1}}
	c.AddSlice("n", driver.Name, socket, zone("numa-2", 2))
	node := holdings.Of(&c.Snapshot).Nodes[0]
	if len(node.NUMANodes) != 1 || len(node.Devices) != 1 || node.Devices[0].Name != "socket-0" || node.Devices[0].Attributes[name] != "0, 1" || node.Totals[0].Total.String() != "16" {
		t.Errorf("node %+v", node)
	}
}

func TestTotalsAreNotKnownWhereAZoneIsNot(t *testing.T) {
	c := occupied.New(t)
	c.AddNode("n")
	c.AddSlice("n", driver.Name, zone("numa-0", 0), zone("numa-1", 1))
	c.AddClaim("d/a", occupied.Share{Node: "n", Device: "numa-1", Amounts: "cpu=4,memory=1Gi"})
	of := func() []holdings.Resource { return holdings.Of(&c.Snapshot).Nodes[0].Totals }
	if got := of(); got[0].Name != "cpu" || got[0].Free.String() != "12" || got[0].Total.String() != "16" || got[1].Free.String() != "31Gi" {
		t.Errorf("totals %+v", got)
	}
	c.AddClaim("d/b", occupied.Share{Node: "n", Device: "numa-9", Amounts: "cpu=1"})
	if got := of(); got[0].Total != nil || got[0].Free != nil || got[0].Held.String() != "5" || got[1].Free.String() != "31Gi" {
		t.Errorf("totals with a lost zone %+v", got)
	}
}

func TestClaimsAndPods(t *testing.T) {
	c := occupied.Showcase(t)
	c.Claim("team-a", "large").Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("a/b"))}}
	got := holdings.Of(&c.Snapshot)
	byKey := make(map[string]holdings.Claim)
	for _, claim := range got.Claims {
		byKey[claim.Key()] = claim
	}
	beta := byKey["default/beta-zone"]
	if share := beta.Shares[0]; !beta.Allocated || share.Why != "4 CPUs in L3 2, the tightest with room" || share.Partition != "root" || share.Conditions[1].Reason != "PartitionInvalid" {
		t.Errorf("beta is %+v", beta)
	}
	if diff := cmp.Diff([]holdings.User{{Resource: "pods", Name: "beta", Node: "worker-1", Phase: "Running"}}, beta.Users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	large := byKey["team-a/large"]
	if amount := large.Requests[0].Capacity["cpu"]; large.Allocated || len(large.Shares) > 0 || amount.String() != "64" || large.Constraints[0] != "all requests: devices with the same a/b" {
		t.Errorf("large is %+v", large)
	}
	want := []holdings.Pending{{Namespace: "team-a", Name: "waits", Claims: []holdings.PodClaim{{Name: "large", Claim: "large"}}, Message: "0/5 nodes are available: 5 cannot allocate all claims."}}
	if diff := cmp.Diff(want, got.Pending); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
}

// Programs iterate over lists without a check for null.
func TestNoListIsNull(t *testing.T) {
	for name, c := range map[string]*occupied.Cluster{"none": occupied.New(t), "showcase": occupied.Showcase(t)} {
		text, err := json.Marshal(holdings.Of(&c.Snapshot))
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"nodes", "elsewhere", "claims", "pending", "totals", "numaNodes", "devices", "problems", "resources", "shares", "taints", "attributes", "users", "requests"} {
			if strings.Contains(string(text), `"`+list+`":null`) {
				t.Errorf("%s: %s is null", name, list)
			}
		}
	}
}

// A page is computed again after every change of the cluster.
func BenchmarkOf(b *testing.B) {
	c := occupied.Large(b, 500, 8)
	for b.Loop() {
		holdings.Of(&c.Snapshot)
	}
}

// Older builds published attributes with the driver's domain in their names.
func TestHoldingsAreAlikeInBothSpellings(t *testing.T) {
	for name, c := range map[string]*occupied.Cluster{"showcase": occupied.Showcase(t), "divided caches": occupied.Divided(t)} {
		want := document(t, holdings.Of(&c.Snapshot))
		c.Slices = object.WithDomain(c.Slices)
		got := holdings.Of(&c.Snapshot)
		if diff := cmp.Diff(want, document(t, got)); diff != "" {
			t.Errorf("%s (-without the domain +with it):\n%s", name, diff)
		}
		for _, node := range got.Nodes {
			for _, at := range node.NUMANodes {
				for _, device := range at.Devices {
					if _, has := device.Attributes["dra.numa/kind"]; !has && device.Driver == driver.Name && device.State != holdings.StateUnpublished {
						t.Errorf("%s: %s has the attributes %v", name, device.Name, device.Attributes)
					}
				}
			}
		}
	}
}

func document(t *testing.T, c holdings.Cluster) string {
	t.Helper()
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
