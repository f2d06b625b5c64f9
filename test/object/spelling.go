package object

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// WithDomain returns copies of ResourceSlices in which the attributes of this driver's
// devices have its domain in their names, as older builds publish them. Slices of other
// drivers stay as they are.
func WithDomain(slices []*resourceapi.ResourceSlice) (spelled []*resourceapi.ResourceSlice) {
	for _, slice := range slices {
		slice = slice.DeepCopy()
		for i := range slice.Spec.Devices {
			if slice.Spec.Driver == deviceclasses.DriverName {
				slice.Spec.Devices[i].Attributes = renamed(slice.Spec.Devices[i].Attributes)
			}
		}
		spelled = append(spelled, slice)
	}
	return spelled
}

func renamed(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	full := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(attributes))
	for name, value := range attributes {
		full[resourceapi.QualifiedName(deviceclasses.FullName(name))] = value
	}
	return full
}

// OwnDomain returns the attributes and capacities of the slices that have the domain of
// their own driver in their names. The libraries of Kubernetes 1.38 refuse to publish them.
func OwnDomain(slices []*resourceapi.ResourceSlice) (names []string) {
	for _, slice := range slices {
		for _, device := range slice.Spec.Devices {
			for name := range device.Attributes {
				if strings.HasPrefix(string(name), slice.Spec.Driver+"/") {
					names = append(names, device.Name+" "+string(name))
				}
			}
			for name := range device.Capacity {
				if strings.HasPrefix(string(name), slice.Spec.Driver+"/") {
					names = append(names, device.Name+" "+string(name))
				}
			}
		}
	}
	return names
}
