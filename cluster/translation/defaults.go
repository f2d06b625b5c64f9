package translation

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// Threads returns the largest number of threads of a core that published zones have, or 0.
func Threads(published []*resourceapi.ResourceSlice) (most int64) {
	largest := accounting.LargestStep(deviceclasses.CapacityCPU)
	for zone := range accounting.Zones(published) {
		threads := deviceclasses.Attribute(zone.Attributes, deviceclasses.AttributeThreadsPerCore).IntValue
		if threads != nil && *threads <= largest.Value() {
			most = max(most, *threads)
		}
	}
	return most
}

// Twins returns the DeviceClasses by the extended resource in whose place they are: those
// that are given, and those that name one.
func Twins(classes []*resourceapi.DeviceClass, given map[corev1.ResourceName]string) map[corev1.ResourceName]string {
	twins := make(map[corev1.ResourceName]string)
	for name, class := range requests.ExtendedResources(classes) {
		if !strings.HasPrefix(string(name), resourceapi.ResourceDeviceClassPrefix) { // Kubernetes' own name of each class
			twins[name] = class.Name
		}
	}
	maps.Copy(twins, given)
	return twins
}
