package scenario

import (
	"fmt"
	"math/rand/v2"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// NewLists is New with lists, which the feature gate DRAListTypeAttributes is for: zones of
// several NUMA nodes have all of them, some devices lists of one, and more claims compare
// them. Some selectors look for an element, others compare a list with a number, which is
// never equal.
func NewLists(name string, seed uint64) Scenario {
	s := New(name, seed)
	m := maker{rand.New(rand.NewPCG(seed, 4)), &s}
	for _, slice := range s.Slices {
		for i := range slice.Spec.Devices {
			m.list(&slice.Spec.Devices[i])
		}
	}
	for _, claim := range s.Claims {
		m.compareLists(&claim.Spec.Devices)
	}
	for _, template := range s.Templates {
		m.compareLists(&template.Spec.Spec.Devices)
	}
	return s
}

// list gives a device lists.
func (m maker) list(device *resourceapi.Device) {
	if node := device.Attributes[numaNode].IntValue; node != nil && m.chance(2) {
		ids := []int64{*node}
		for range m.IntN(3) {
			ids = append(ids, int64(m.IntN(4))) // some are there twice
		}
		device.Attributes[numaNode] = resourceapi.DeviceAttribute{IntValues: ids}
	}
	if root := device.Attributes[pcieRoot].StringValue; root != nil && m.chance(4) {
		device.Attributes[pcieRoot] = resourceapi.DeviceAttribute{StringValues: []string{"pci0000:07", *root}}
	}
	if m.chance(4) {
		device.Attributes["tags"] = pick(m,
			resourceapi.DeviceAttribute{StringValues: []string{"a", "b"}}, resourceapi.DeviceAttribute{StringValue: ptr.To("a")},
			resourceapi.DeviceAttribute{IntValues: []int64{1, 2}}, resourceapi.DeviceAttribute{BoolValues: []bool{true, false}},
			resourceapi.DeviceAttribute{VersionValues: []string{"1.0.0", "2.0.0"}}, resourceapi.DeviceAttribute{VersionValue: ptr.To("2.0.0")},
		)
	}
}

// compareLists adds constraints and selectors.
func (m maker) compareLists(devices *resourceapi.DeviceClaim) {
	if m.chance(3) {
		attribute := resourceapi.FullyQualifiedName(pick(m, numaNode, numaNode, numaNode, pcieRoot, m.driver()+"/tags"))
		constraint := resourceapi.DeviceConstraint{MatchAttribute: &attribute}
		if m.chance(3) {
			constraint = resourceapi.DeviceConstraint{DistinctAttribute: &attribute}
		}
		devices.Constraints = append(devices.Constraints, constraint)
	}
	for i := range devices.Requests {
		exact := devices.Requests[i].Exactly
		if exact == nil || !m.chance(5) {
			continue
		}
		const node = `device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1)`
		exact.Selectors = append(exact.Selectors, selector(pick(m,
			fmt.Sprintf(`has(%[1]s) && %[1]s.includes(%[2]d)`, `device.attributes["resource.kubernetes.io"].numaNode`, m.IntN(4)),
			fmt.Sprintf(`%s == %d`, node, m.IntN(2)),
			fmt.Sprintf(`%s != %d`, node, m.IntN(2)),
			fmt.Sprintf(`has(device.attributes[%[1]q].tags) && device.attributes[%[1]q].tags.includes("b")`, m.driver()),
		))...)
	}
}
