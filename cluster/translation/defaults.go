package translation

import (
	resourceapi "k8s.io/api/resource/v1"

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
