package inventory

import resourceapi "k8s.io/api/resource/v1"

// WithTaints returns the slices as the scheduler sees them: copies whose devices have
// the taints of the rules (resourceslice/tracker).
func WithTaints(slices []*resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) []*resourceapi.ResourceSlice {
	if len(rules) == 0 {
		return slices
	}
	list := make([]*resourceapi.ResourceSlice, len(slices))
	for i, slice := range slices {
		list[i] = slice.DeepCopy()
		for _, rule := range rules {
			taint(list[i], rule.Spec)
		}
	}
	return list
}

func taint(slice *resourceapi.ResourceSlice, rule resourceapi.DeviceTaintRuleSpec) {
	selector := rule.DeviceSelector
	matches := func(want *string, is string) bool { return want == nil || *want == is }
	if selector == nil || !matches(selector.Driver, slice.Spec.Driver) || !matches(selector.Pool, slice.Spec.Pool.Name) {
		return
	}
	for i := range slice.Spec.Devices {
		if device := &slice.Spec.Devices[i]; matches(selector.Device, device.Name) {
			device.Taints = append(device.Taints, rule.Taint)
		}
	}
}
