package shape

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Held is what another claim holds of a node.
type Held struct {
	Driver, Device string
	Consumed       map[resourceapi.QualifiedName]resource.Quantity // nil: all of an exclusive device
}

// Holds is what a claim holds that leaves so many CPUs of a NUMA node. Of exclusive devices, it holds
// as large a part of the NUMA node's share of all. It is nil if pods of the shape have no claims.
func (s Shape) Holds(m numa.Machine, zone, left int) (list []Held) {
	cpus := zoneCPUs(m) - left
	type amounts = map[resourceapi.QualifiedName]resource.Quantity
	name, cpu, memory := fmt.Sprintf("numa-%d", m.Zones[zone].ID), *resource.NewQuantity(int64(cpus), resource.DecimalSI), resource.MustParse(PodMemory)
	switch s.Name {
	case Plain:
	case Split:
		list = []Held{{s.Drivers[0].Name, name, amounts{"cpu": cpu}}, {s.Drivers[1].Name, name, amounts{"memory": memory}}}
	case Ours:
		list = []Held{{s.Drivers[0].Name, name, amounts{"cpu": cpu, "memory": memory}}}
	default: // exclusive devices, in the order of the NUMA nodes
		devices := s.Drivers[0].Devices
		of := len(devices) / len(m.Zones)
		for _, device := range devices[zone*of : zone*of+of*cpus/zoneCPUs(m)] {
			list = append(list, Held{s.Drivers[0].Name, device.Name, nil})
		}
	}
	return list
}

// Filled is the shape as a node publishes it whose first NUMA nodes have no CPUs left: this
// driver publishes full zones last.
func (s Shape) Filled(m *numa.Machine, full int) Shape {
	if s.Name != Ours {
		return s
	}
	held := map[string]int{}
	for _, zone := range zones.Of(m, "")[:full] {
		held[zone.Device] = zone.CPUs.Size()
	}
	s.Drivers = []Driver{{driver.Name, s.Ordered(m, held, "")}}
	return s
}

// Ordered is the devices of this driver, in the order in which a node with this zoneOrder publishes
// them. Held is how many CPUs claims hold, by device.
func (s Shape) Ordered(m *numa.Machine, held map[string]int, by string) []resourceapi.Device {
	taken := cpuset.Set{}
	all := zones.Of(m, "")
	for _, zone := range all {
		left := held[zone.Device]
		for cpu := range zone.CPUs.All() {
			if left == 0 {
				break
			}
			taken.Insert(cpu)
			left--
		}
	}
	devices := slices.Clone(s.Drivers[0].Devices)
	zones.Sort(devices[:len(all)], all, nil, taken, by)
	return devices
}

// Allocated is a claim with this name that the scheduler has allocated from a pool.
func Allocated(name, pool string, held []Held) *resourceapi.ResourceClaim {
	const allocated = "held"
	c := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourceapi.ResourceClaimSpec{Devices: *claim(nil, request("held.scale.test", capacity{}))},
		Status:     resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{}},
	}
	c.Spec.Devices.Requests[0].Name = allocated
	for _, h := range held {
		result := resourceapi.DeviceRequestAllocationResult{Request: allocated, Driver: h.Driver, Pool: pool, Device: h.Device}
		if h.Consumed != nil {
			result.ShareID, result.ConsumedCapacity = ptr.To(uuid.NewUUID()), h.Consumed
		}
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, result)
	}
	return c
}

// Filler is a pod that takes so many CPUs of a node, without a claim.
func Filler(node string, cpus int) *corev1.Pod {
	pod := Shape{}.Pod("filler-"+node, nil, "")
	pod.Spec.NodeName = node
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewQuantity(int64(cpus), resource.DecimalSI)
	return pod
}

// Foreign is what a claim of another driver holds, one of many: a share of a device of a node that
// the cluster does not have, and the node's pool. 20 of them are on each node.
func Foreign(index int) (pool string, held Held) {
	return fmt.Sprintf("other-%d", index/20), Held{"shares.scale.test", fmt.Sprintf("numa-%d", index%4), map[resourceapi.QualifiedName]resource.Quantity{
		"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"),
	}}
}
