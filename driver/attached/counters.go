package attached

import (
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// vfCounter counts the virtual functions of a physical function that can be allocated.
const vfCounter = "vfs"

// WithCounters returns the devices with counters, so that a physical function and its
// virtual functions are never allocated at the same time. Each physical function has a
// counter of its virtual functions. A virtual function consumes 1 of it, and the
// physical function consumes all of it. A device that no other device in the list
// excludes has no counter. Other devices do not change, and the order stays the same.
func WithCounters(devices []resourceapi.Device) []resourceapi.Device {
	physical, virtual := map[string]bool{}, map[string]int64{}
	for _, d := range devices {
		if of := stringOf(d, deviceclasses.AttributePhysicalFunction); of != "" {
			virtual[of]++
		} else if address := stringOf(d, deviceclasses.AttributePCIBusID); address != "" {
			physical[address] = true
		}
	}
	counted := slices.Clone(devices)
	for i, d := range counted {
		address, amount := stringOf(d, deviceclasses.AttributePhysicalFunction), int64(1)
		if address == "" {
			address = stringOf(d, deviceclasses.AttributePCIBusID)
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

// CounterSets returns the counter sets that the devices consume, sorted by name. Each
// set is as large as the consumption of its physical function.
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

// stringOf returns a string attribute; "" if the device does not have it.
func stringOf(d resourceapi.Device, name resourceapi.QualifiedName) string {
	return ptr.Deref(d.Attributes[name].StringValue, "")
}
