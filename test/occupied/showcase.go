package occupied

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
)

// Showcase has a node for each thing that can be shown, worker-1 to worker-5, and
// a pod that waits.
func Showcase(tb testing.TB) *Cluster {
	c := New(tb)
	c.addRig()
	c.addBig()
	c.AddNode("worker-3") // the driver's slices are gone, a claim is not
	c.AddClaim("default/left", Share{Node: "worker-3", Device: "numa-1", Amounts: "cpu=2,memory=64Mi", CPUs: ptr.To("2-3"), Mems: "1"})
	c.AddNode("worker-4").Spec.Unschedulable = true
	c.AddSlice("worker-4", driver.Name, resourceapi.Device{
		Name: "numa-0", AllowMultipleAllocations: ptr.To(true), Attributes: attributes("kind", "zone", 0),
		Capacity: capacity("cpu=8,memory=16Gi"),
	}).Spec.Pool.ResourceSliceCount = 2
	c.AddNode("worker-5") // nobody publishes anything
	pod := c.AddPod("team-a/waits", "", "large")
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/5 nodes are available: 5 cannot allocate all claims.",
	}}
	large := c.AddClaim("team-a/large", Share{Request: "zone", Amounts: "cpu=64"})
	large.Status = resourceapi.ResourceClaimStatus{}
	return c
}

// addRig is worker-1: four small zones, network cards of another driver beside
// two of them.
func (c *Cluster) addRig() {
	const node = "worker-1"
	c.AddMachine(node, "rig", zones.Faults{3: deviceclasses.FaultPartitionInvalid})
	c.AddSlice(node, "dra.net",
		resourceapi.Device{Name: "eth1", Attributes: attributes("ifName", "eth1", 1)},
		resourceapi.Device{Name: "eth3", Attributes: attributes("ifName", "eth3", 3)},
		resourceapi.Device{Name: "eth9", Attributes: attributes("ifName", "eth9", -1)},
	)
	c.AddClaim("default/alpha-zone",
		Share{Request: "zone", Node: node, Device: "numa-1", Amounts: "cpu=2,memory=256Mi", CPUs: ptr.To("4-5"), Mems: "1"},
		Share{Request: "nic", Driver: "dra.net", Node: node, Device: "eth1"})
	c.AddClaim("default/beta-zone", Share{
		Node: node, Device: "numa-2", Amounts: "cpu=4,memory=512Mi", CPUs: ptr.To("8-11"), Mems: "2", Fault: "other tasks may run on the CPUs: the kernel says invalid",
	})
	c.AddClaim("default/huge", Share{Node: node, Device: "numa-1", Amounts: "cpu=0,memory=64Mi,hugepages2Mi=8Mi", CPUs: ptr.To(""), Mems: "1"})
	c.AddClaim("ops/monitor", Share{Node: node, Device: "numa-0", Admin: true})
	c.AddClaim("team-a/gamma",
		Share{Request: "main", Node: node, Device: "numa-3", Amounts: "cpu=2,memory=128Mi"},
		Share{Request: "aux", Node: node, Device: "numa-3", Amounts: "memory=32Mi"})
	c.AddPod("default/alpha", node, "alpha-zone", "huge")
	c.AddPod("default/beta", node, "beta-zone")
	c.AddPod("team-a/gamma-0", node, "gamma")
}

// addBig is worker-2: eight zones of many CPUs, and a GPU that can be had whole or
// in parts.
func (c *Cluster) addBig() {
	const node = "worker-2"
	c.AddMachine(node, "epyc-2s-nps4", nil)
	for zone := range 7 {
		for i := range 3 {
			if zone == 3 {
				continue
			}
			first := zone*16 + i*4 + 1
			name := fmt.Sprintf("db-%d-%d", zone, i)
			c.AddClaim("prod/"+name, Share{
				Request: "zone", Node: node, Device: fmt.Sprintf("numa-%d", zone), Amounts: "cpu=8,memory=32Gi",
				CPUs: ptr.To(fmt.Sprintf("%d-%d,%d-%d", first, first+3, first+128, first+131)), Mems: fmt.Sprint(zone),
			})
			c.AddPod("prod/"+name, node, name)
		}
	}
	slices := func(count string) []resourceapi.DeviceCounterConsumption {
		return []resourceapi.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: map[string]resourceapi.Counter{"slices": {Value: resource.MustParse(count)}}}}
	}
	gpu := c.AddSlice(node, "gpu.example.com",
		resourceapi.Device{Name: "gpu-0", Attributes: attributes("type", "gpu", 2), ConsumesCounters: slices("7")},
		resourceapi.Device{Name: "gpu-0-mig-1", Attributes: attributes("type", "mig", 2), ConsumesCounters: slices("3")},
		resourceapi.Device{Name: "gpu-0-mig-2", Attributes: attributes("type", "mig", 2), ConsumesCounters: slices("3")},
	)
	gpu.Spec.Pool.ResourceSliceCount = 2
	counters := c.AddSlice(node, "gpu.example.com")
	counters.Spec.Pool.ResourceSliceCount = 2
	counters.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "gpu-0", Counters: map[string]resourceapi.Counter{"slices": {Value: resource.MustParse("7")}}}}
	c.AddClaim("prod/mig", Share{Request: "gpu", Driver: "gpu.example.com", Node: node, Device: "gpu-0-mig-1"})
}

// attributes are one of the driver's own, and the NUMA node if there is one.
func attributes(name, value string, numaNode int64) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	list := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{resourceapi.QualifiedName(name): {StringValue: &value}}
	if numaNode >= 0 {
		list["resource.kubernetes.io/numaNode"] = resourceapi.DeviceAttribute{IntValue: &numaNode}
	}
	return list
}

func capacity(text string) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	list := make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
	for name, amount := range amounts(text) {
		list[name] = resourceapi.DeviceCapacity{Value: amount}
	}
	return list
}

// Large has nodes of zones, each held by two claims; of those on a node's last zone
// the status is not written.
func Large(tb testing.TB, nodes, zones int) *Cluster {
	c := New(tb)
	for n := range nodes {
		node := fmt.Sprintf("node-%03d", n)
		c.AddNode(node)
		var devices []resourceapi.Device
		for z := range zones {
			device := resourceapi.Device{
				Name: fmt.Sprintf("numa-%d", z), AllowMultipleAllocations: ptr.To(true), Attributes: attributes("kind", "zone", int64(z)),
				Capacity: capacity("cpu=64,memory=128Gi,hugepages2Mi=8Gi"),
			}
			devices = append(devices, device)
			for i := range 2 {
				claim := fmt.Sprintf("claim-%03d-%d-%d", n, z, i)
				share := Share{Request: "zone", Node: node, Device: device.Name, Amounts: "cpu=16,memory=30Gi,hugepages2Mi=64Mi", Mems: fmt.Sprint(z)}
				if z < zones-1 {
					share.CPUs = ptr.To(fmt.Sprintf("%d-%d", z*64+i*16, z*64+i*16+15))
				}
				c.AddClaim("load/"+claim, share)
			}
		}
		c.AddSlice(node, driver.Name, devices...)
	}
	return c
}
