package driver

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// cpuDriver is the name of dra-driver-cpu, which may publish a device for each
// CPU and then has no capacity to know it by.
const cpuDriver = "dra.cpu"

// IsRival reports whether the slice is of another driver that gives out CPUs, and
// so those of our claims: it is of dra-driver-cpu, or a device has a capacity cpu,
// of whatever domain. Attributes tell nothing: drivers of memory and networks carry
// some of the domain dra.cpu, so that a claim may match on them.
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
