package driver

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// cpuDriver is the name of dra-driver-cpu. It may publish one device for each CPU. Such
// devices have no CPU capacity by which IsRival could recognise them.
const cpuDriver = "dra.cpu"

// IsRival reports whether the slice comes from another driver that gives out CPUs,
// which may be CPUs of our claims. Such a slice comes from dra-driver-cpu, or it has a
// device with a capacity named cpu in any domain. Attributes prove nothing: drivers of
// memory and networks publish attributes in the domain dra.cpu, so that a claim can
// match on them.
func IsRival(slice *resourceapi.ResourceSlice) bool {
	return slice.Spec.Driver != Name && slices.ContainsFunc(slice.Spec.Devices, func(device resourceapi.Device) bool {
		if slice.Spec.Driver == cpuDriver {
			return true
		}
		for name := range device.Capacity {
			if name == "cpu" || strings.HasSuffix(string(name), "/cpu") {
				return true
			}
		}
		return false
	})
}
