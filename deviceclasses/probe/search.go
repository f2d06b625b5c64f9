package probe

import (
	"context"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// search evaluates selectors for all devices that differ in what the selectors read. It
// decides what a device has of that only before the first selector that can read it: a
// device that an earlier selector rejects needs no decision.
type search struct {
	ctx    context.Context // when it ends, the result is incomplete
	texts  []text
	result Result
	cost   uint64

	sort    sort
	device  resourceapi.Device
	decided []bool // by feature of the sort: the device has it, or lacks it
	devices int    // for which a selector was evaluated
}

// of evaluates the selectors for devices of a sort. What no selector names has a value if
// no device lacks it.
func (s *search) of(sort sort) {
	s.sort, s.devices, s.decided = sort, 0, make([]bool, len(sort.features))
	s.device = resourceapi.Device{
		AllowMultipleAllocations: &sort.shared,
		Attributes:               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{},
		Capacity:                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{},
	}
	if sort.kind != "" {
		s.device.Attributes[deviceclasses.AttributeKind] = resourceapi.DeviceAttribute{StringValue: &sort.kind}
	}
	for i := range sort.features {
		if f := &sort.features[i]; !f.absent {
			f.give(&s.device, 0)
		}
	}
	s.decide(0, 0)
}

// decide tries everything that the device can have of the features from index on that the
// selector reads, and then evaluates the selector.
func (s *search) decide(selector, index int) {
	if selector == len(s.texts) {
		s.selected()
		return
	}
	for index < len(s.decided) && (s.decided[index] || !s.sort.features[index].readBy(&s.texts[selector])) {
		index++
	}
	if index == len(s.decided) {
		s.evaluate(selector)
		return
	}
	f := &s.sort.features[index]
	s.decided[index] = true
	defer func() { s.decided[index] = false }()
	absent, present := f.absent, true
	if f.onlyIf != "" {
		flag := s.device.Attributes[f.onlyIf].BoolValue
		absent, present = !*flag, *flag
	}
	if present {
		for i := range f.count() {
			if s.enough() {
				return
			}
			f.give(&s.device, i)
			s.decide(selector, index+1)
		}
	}
	f.take(&s.device)
	if absent && !s.enough() {
		s.decide(selector, index+1)
	}
}

func (s *search) evaluate(selector int) {
	s.devices++
	text := &s.texts[selector]
	matched, cost, err := text.Matches(s.ctx, allocation.NewDevice(s.sort.driver, &s.device))
	s.cost += cost
	if matched && err == nil {
		s.decide(selector+1, 0)
	}
	if name := missingName(err); name != "" && text.own >= 0 && s.result.Missing == nil && s.sort.known {
		s.result.Missing = &Missing{text.own, name, s.sort.foreign()}
	}
}

// enough reports that nothing more can be found in this sort, or that it would cost too
// much.
func (s *search) enough() bool {
	if s.devices >= maxDevices || s.cost >= maxCost || s.ctx.Err() != nil {
		s.result.Incomplete = true
		return true
	}
	return *s.found() && (s.result.Missing != nil || !s.sort.known)
}

func (s *search) selected() { *s.found() = true }

// found is the field of the result that says whether a device of the sort is selected.
func (s *search) found() *bool {
	switch {
	case s.sort.foreign():
		return &s.result.Foreign
	case s.sort.isZone():
		return &s.result.Zones
	case s.sort.isCache():
		return &s.result.Caches
	}
	return &s.result.Functions
}

// count is the number of values.
func (f *feature) count() int { return max(len(f.values), len(f.capacities)) }

// give gives a device a value of the feature.
func (f *feature) give(device *resourceapi.Device, value int) {
	for _, name := range f.names {
		if len(f.capacities) > 0 {
			device.Capacity[name] = resourceapi.DeviceCapacity{Value: f.capacities[value]}
		} else {
			device.Attributes[name] = f.values[value]
		}
	}
}

// take takes the feature from a device.
func (f *feature) take(device *resourceapi.Device) {
	for _, name := range f.names {
		delete(device.Capacity, name)
		delete(device.Attributes, name)
	}
}

// missingName is the name in a CEL error; "" for other errors.
func missingName(err error) string {
	if err == nil {
		return ""
	}
	_, rest, found := strings.Cut(err.Error(), "no such key: ")
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, " ")
	return strings.TrimRight(name, ".,;:)")
}
