package manifest

import (
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// pcieRoot is the attribute that the devices of a pair have in common.
const pcieRoot = resourceapi.FullyQualifiedName(deviceclasses.AttributePCIeRoot)

// checkPairs refuses pairs that cannot be made of the devices.
func (w Wish) checkPairs() error {
	if !w.Paired {
		return nil
	}
	other := func(d Devices) bool { return d.Count != w.Devices[0].Count }
	switch {
	case len(w.Devices) < 2 || slices.ContainsFunc(w.Devices, other):
		return errors.New("pairs: want devices of 2 classes or more, and as many of each class")
	case w.Same != "" || len(w.Places) > 0:
		return errors.New("pairs are on the NUMA node of their share: want no alternatives, and nothing on the same node or socket")
	case w.Devices[0].Count%int64(w.Shares) != 0:
		return fmt.Errorf("%d pairs cannot be divided among %d shares", w.Devices[0].Count, w.Shares)
	}
	if count := w.devices(w.HasShares()); count > resourceapi.DeviceRequestsMaxSize {
		return fmt.Errorf("%d shares and devices in pairs: want %d or fewer", count, resourceapi.DeviceRequestsMaxSize)
	}
	return nil
}

// addPairs adds a request for each device. A pair has one device of each class, under one
// PCIe root. Its devices are on the NUMA node of a share, as far as they publish it: one of
// them is enough, because the others are under the same root. Each share has as many pairs.
func (w Wish) addPairs(devices *resourceapi.DeviceClaim, zones []string, name func(class string) string) {
	type bond struct {
		zone string
		with resourceapi.FullyQualifiedName
	}
	var bonds []bond
	near := make(map[bond][]string)
	count := int(w.Devices[0].Count)
	for i := range count {
		var pair []string
		for _, wanted := range w.Devices {
			request := name(wanted.Class)
			pair = append(pair, request)
			devices.Requests = append(devices.Requests, resourceapi.DeviceRequest{
				Name: request, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: wanted.Class},
			})
			if wanted.Near == "" || len(zones) == 0 {
				continue
			}
			b := bond{zones[i*len(zones)/count], wanted.Near}
			if near[b] == nil {
				bonds = append(bonds, b)
			}
			near[b] = append(near[b], request)
		}
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: pair, MatchAttribute: new(pcieRoot)})
	}
	for _, b := range bonds {
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: append([]string{b.zone}, near[b]...), MatchAttribute: &b.with})
	}
}
