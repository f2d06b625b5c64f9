package scenario

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Names of attributes. Some devices lack them.
const (
	numaNode = "resource.kubernetes.io/numaNode"
	pcieRoot = "resource.kubernetes.io/pcieRoot"
)

// Taints and what tolerates them.
const (
	nodeTaint   = "scenario.test/node"
	deviceTaint = "scenario.test/device"
)

func (m maker) addNode(name string) {
	node := &corev1.Node{
		TypeMeta:   typeMeta("Node"),
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: m.Name, "scenario.test/node": name}},
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: count(8 + m.IntN(16)), corev1.ResourceMemory: quantity("16Gi"), corev1.ResourcePods: count(pick(m, 2, 20, 20, 20)),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if m.chance(10) {
		node.Spec.Taints = []corev1.Taint{{Key: nodeTaint, Effect: corev1.TaintEffectNoSchedule}}
	}
	if m.chance(20) {
		node.Spec.Unschedulable = true
	}
	m.Nodes = append(m.Nodes, node)
}

// copySlices gives a node the devices of another.
func (m maker) copySlices(from, to string) {
	for _, slice := range m.Slices {
		if *slice.Spec.NodeName == from {
			spec := *slice.Spec.DeepCopy()
			spec.NodeName, spec.Pool.Name = &to, to
			m.addSlice(to+strings.TrimPrefix(slice.Name, from), spec)
		}
	}
}

// addSlices gives the node zones, devices near them and, sometimes, devices that
// consume shared counters.
func (m maker) addSlices(node string) {
	var zones, whole []resourceapi.Device
	zoneCount := 1 + m.IntN(4)
	for zone := range zoneCount {
		zones = append(zones, m.zone(zone))
	}
	for i := range 1 + m.IntN(6) {
		whole = append(whole, m.whole(i, m.IntN(zoneCount)))
	}
	parts := [][]resourceapi.Device{append(zones, whole...)}
	if m.chance(4) {
		parts = [][]resourceapi.Device{whole, zones} // by name, whole devices come first
	}
	var counters []resourceapi.CounterSet
	if m.chance(2) {
		counters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: count(4)}}}}
		parts = append(parts, m.partitions())
	}
	total := int64(len(parts))
	if counters != nil {
		total++
	}
	if m.chance(15) {
		total++ // a slice is missing: nothing of the pool can be had
	}
	pool := resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: total}
	for i, devices := range parts {
		m.addSlice(fmt.Sprintf("%s-%d", node, i), resourceapi.ResourceSliceSpec{Driver: m.driver(), Pool: pool, NodeName: &node, Devices: devices})
	}
	if counters != nil {
		m.addSlice(node+"-counters", resourceapi.ResourceSliceSpec{Driver: m.driver(), Pool: pool, NodeName: &node, SharedCounters: counters})
	}
}

func (m maker) addSlice(name string, spec resourceapi.ResourceSliceSpec) {
	m.Slices = append(m.Slices, &resourceapi.ResourceSlice{
		TypeMeta: typeMeta("ResourceSlice"), ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	})
}

func (m maker) zone(id int) resourceapi.Device {
	policy := func(step string) *resourceapi.CapacityRequestPolicy {
		zero, one := quantity("0"), quantity(step)
		p := &resourceapi.CapacityRequestPolicy{Default: &zero, ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: &zero, Step: &one}}
		return p
	}
	step := pick(m, "1", "2", "2")
	cpus := 2 * (1 + m.IntN(8))
	device := resourceapi.Device{
		Name:                     fmt.Sprintf("zone-%d", id),
		AllowMultipleAllocations: ptr.To(true),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"kind": stringAttribute("zone"), numaNode: intAttribute(id), "socket": intAttribute(id / 2),
		},
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
			"cpu":    {Value: count(cpus), RequestPolicy: policy(step)},
			"memory": {Value: quantity("8Gi"), RequestPolicy: policy("1Mi")},
		},
	}
	if m.chance(3) {
		device.Capacity["hugepages1Gi"] = resourceapi.DeviceCapacity{Value: quantity(pick(m, "1Gi", "2Gi", "4Gi")), RequestPolicy: policy("1Gi")}
	}
	if m.chance(4) {
		most := count(2 * (1 + m.IntN(cpus/2)))
		device.Capacity["cpu"].RequestPolicy.ValidRange.Max = &most
	}
	if m.chance(8) {
		device.Capacity["cache"] = resourceapi.DeviceCapacity{Value: count(16)} // taken whole by who does not name it
	}
	if m.chance(8) {
		device.Capacity["rate"] = resourceapi.DeviceCapacity{Value: count(40), RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: ptr.To(quantity("5")), ValidValues: []quantityType{quantity("5"), quantity("10"), quantity("20")},
		}}
	}
	m.maybeTaint(&device)
	return device
}

func (m maker) whole(id, zone int) resourceapi.Device {
	device := resourceapi.Device{
		Name: fmt.Sprintf("dev-%d", id),
		Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"kind":  stringAttribute(pick(m, "gpu", "gpu", "nic")),
			"model": stringAttribute(pick(m, "a", "b")),
		},
	}
	if !m.chance(6) {
		device.Attributes[numaNode] = intAttribute(zone)
	}
	if !m.chance(6) {
		device.Attributes[pcieRoot] = stringAttribute(fmt.Sprintf("pci0000:%02d", m.IntN(2)))
	}
	m.maybeTaint(&device)
	return device
}

// partitions are pieces of one card with four slots.
func (m maker) partitions() (devices []resourceapi.Device) {
	for i, slots := range []int{4, 2, 2, 1, 1} {
		device := resourceapi.Device{
			Name: fmt.Sprintf("part-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"kind": stringAttribute("part"), "slots": intAttribute(slots), numaNode: intAttribute(0),
			},
			ConsumesCounters: []resourceapi.DeviceCounterConsumption{
				{CounterSet: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: count(slots)}}},
			},
		}
		devices = append(devices, device)
	}
	return devices
}

func (m maker) maybeTaint(device *resourceapi.Device) {
	if m.chance(8) {
		device.Taints = []resourceapi.DeviceTaint{{
			Key: deviceTaint, Value: "sick",
			Effect: pick(m, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute),
		}}
	}
}

// addNetworkDevices are such that every node of the scenario can reach.
func (m maker) addNetworkDevices() {
	pool := resourceapi.ResourcePool{Name: m.Name + "-net", Generation: 3, ResourceSliceCount: 1}
	spec := resourceapi.ResourceSliceSpec{Driver: m.networkDriver(), Pool: pool}
	if m.chance(2) {
		spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: Label, Operator: corev1.NodeSelectorOpIn, Values: []string{m.Name}}},
		}}}
	} else {
		spec.AllNodes = ptr.To(true)
	}
	for i := range 1 + m.IntN(2) {
		spec.Devices = append(spec.Devices, resourceapi.Device{
			Name:       fmt.Sprintf("net-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": stringAttribute("net")},
		})
	}
	m.addSlice(pool.Name, spec)
	outdated := spec
	outdated.Pool.Generation, outdated.Pool.ResourceSliceCount = 2, 2
	m.addSlice(pool.Name+"-old", outdated)
}

func (m maker) addTaintRule() {
	m.TaintRules = append(m.TaintRules, &resourceapi.DeviceTaintRule{
		TypeMeta: typeMeta("DeviceTaintRule"), ObjectMeta: metav1.ObjectMeta{Name: m.Name},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(m.driver()), Pool: ptr.To(m.Nodes[0].Name)},
			Taint:          resourceapi.DeviceTaint{Key: deviceTaint, Value: "rule", Effect: resourceapi.DeviceTaintEffectNoSchedule},
		},
	})
}
