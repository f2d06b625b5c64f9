package attached

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// vfCounter counts the virtual functions of a physical one that can be had.
const vfCounter = "vfs"

// WithCounters returns the devices such that a physical function and its virtual
// ones are never allocated at the same time: there is a counter of virtual
// functions, each of which consumes one, and their physical function all. Who
// has none beside it that excludes it has no counter. Other devices stay as they
// are, and so does the order.
func WithCounters(devices []resourceapi.Device) []resourceapi.Device {
	physical, virtual := map[string]bool{}, map[string]int64{}
	for _, d := range devices {
		if of := stringOf(d, AttributePhysFn); of != "" {
			virtual[of]++
		} else if address := stringOf(d, AttributePCIBusID); address != "" {
			physical[address] = true
		}
	}
	counted := slices.Clone(devices)
	for i, d := range counted {
		address, amount := stringOf(d, AttributePhysFn), int64(1)
		if address == "" {
			address = stringOf(d, AttributePCIBusID)
			amount = virtual[address]
		}
		if physical[address] && virtual[address] > 0 {
			counted[i].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{
				CounterSet: counterSet(address), Counters: map[string]resourceapi.Counter{vfCounter: counter(amount)},
			}}
		}
	}
	return counted
}

// CounterSets are those that devices with counters consume, by name. Each is as
// large as what its physical function consumes.
func CounterSets(devices []resourceapi.Device) []resourceapi.CounterSet {
	size := map[string]resourceapi.Counter{}
	for _, d := range devices {
		for _, consumed := range d.ConsumesCounters {
			now, amount := size[consumed.CounterSet], consumed.Counters[vfCounter]
			if amount.Value.Cmp(now.Value) > 0 {
				size[consumed.CounterSet] = amount
			}
		}
	}
	var sets []resourceapi.CounterSet
	for _, name := range slices.Sorted(maps.Keys(size)) {
		sets = append(sets, resourceapi.CounterSet{Name: name, Counters: map[string]resourceapi.Counter{vfCounter: size[name]}})
	}
	return sets
}

func counter(amount int64) resourceapi.Counter {
	return resourceapi.Counter{Value: *resource.NewQuantity(amount, resource.DecimalSI)}
}

func counterSet(physical string) string { return "pf-" + label(physical) }

// stringOf is "" where the device has no such attribute.
func stringOf(d resourceapi.Device, name resourceapi.QualifiedName) string {
	return ptr.Deref(d.Attributes[name].StringValue, "")
}
