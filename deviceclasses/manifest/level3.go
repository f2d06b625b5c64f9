package manifest

import (
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// checkL3 refuses what zones that are level-3 caches do not have.
func (w Wish) checkL3() error {
	switch {
	case !w.Filter.L3:
		return nil
	case w.CPUs == 0:
		return errors.New("a zone of a level-3 cache has only CPUs: want cpus as well")
	case len(w.Places) > 0:
		return errors.New("alternatives are for zones with memory, not for those of level-3 caches: want no alternatives")
	}
	return nil
}

// ofZone returns the part of the wish that zones give: only CPUs, if the zones are level-3
// caches.
func (w Wish) ofZone() Wish {
	if w.Filter.L3 {
		w.Memory, w.Hugepages = resource.Quantity{}, nil
	}
	return w
}

// addMemory adds a request for the memory of each share, on the NUMA node of its zone, if
// the zones are level-3 caches. It returns the names of the requests.
func (w Wish) addMemory(devices *resourceapi.DeviceClaim, zones []string) (names []string) {
	memory := w
	memory.CPUs, memory.Filter.L3 = 0, false
	capacity := memory.capacity()
	if !w.Filter.L3 || capacity == nil {
		return nil
	}
	for i, zone := range zones {
		name := "memory"
		if len(zones) > 1 {
			name = fmt.Sprintf("memory-%d", i)
		}
		names = append(names, name)
		devices.Requests = append(devices.Requests, resourceapi.DeviceRequest{
			Name:    name,
			Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: w.Class, Selectors: memory.Filter.Selectors(), Capacity: capacity},
		})
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: []string{zone, name}, MatchAttribute: new(numaNode)})
	}
	return names
}
