package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// Device is a device that a node can see.
type Device struct {
	*resourceapi.Device
	Slice *resourceapi.ResourceSlice
	ID    allocation.DeviceID
	// Incomplete says which slices of the pool are missing, and Invalid what is wrong with
	// them; "" means nothing. The scheduler allocates no device of such a pool.
	Incomplete, Invalid string

	order int // its number in the inventory, which identifies it
}

// Shared reports whether several claims can hold parts of the device.
func (d *Device) Shared() bool { return ptr.Deref(d.AllowMultipleAllocations, false) }

// Unusable returns why the scheduler allocates no device of the pool, or "".
func (d *Device) Unusable() string { return cmp.Or(d.Incomplete, d.Invalid) }

// devicesFor returns the devices in the current slices that the node can see, in the
// order of the slices.
func (p *Pool) devicesFor(node *corev1.Node, order map[*resourceapi.Device]int) (list []Device) {
	current := p.current()
	incomplete := ""
	if wanted := current[0].Spec.Pool.ResourceSliceCount; wanted != int64(len(current)) {
		incomplete = fmt.Sprintf("pool %s of driver %s is incomplete: %d of %d ResourceSlices exist", p.ID.Name, p.ID.Driver, len(current), wanted)
	}
	names, invalid := make(map[string]bool), ""
	for _, slice := range current {
		before := len(list)
		whole := seenBy(node, ptr.Deref(slice.Spec.NodeName, ""), ptr.Deref(slice.Spec.AllNodes, false), slice.Spec.NodeSelector)
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			alone := ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) &&
				seenBy(node, ptr.Deref(d.NodeName, ""), ptr.Deref(d.AllNodes, false), d.NodeSelector)
			if whole || alone {
				id := allocation.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)
				list = append(list, Device{d, slice, id, incomplete, "", order[d]})
			}
		}
		for i := range slice.Spec.Devices {
			name := slice.Spec.Devices[i].Name
			if len(list) > before && names[name] { // the allocator compares only slices with devices for the node
				invalid = p.invalid("two devices are called %s", name)
			}
			names[name] = names[name] || len(list) > before
		}
	}
	for i := range list {
		list[i].Invalid = cmp.Or(invalid, p.counters)
	}
	return list
}

func (p *Pool) invalid(format string, args ...any) string {
	return fmt.Sprintf("pool %s of driver %s is invalid: ", p.ID.Name, p.ID.Driver) + fmt.Sprintf(format, args...)
}

// invalidCounters returns what is wrong with the counters of the pool, or "".
func (p *Pool) invalidCounters() string {
	sets := make(map[string]map[string]resourceapi.Counter)
	for _, slice := range p.current() {
		for _, set := range slice.Spec.SharedCounters {
			if _, has := sets[set.Name]; has {
				return p.invalid("two counter sets are called %s", set.Name)
			}
			sets[set.Name] = set.Counters
		}
	}
	for _, slice := range p.current() {
		for _, device := range slice.Spec.Devices {
			for _, consumed := range device.ConsumesCounters {
				set, has := sets[consumed.CounterSet]
				if !has {
					return p.invalid("device %s consumes counters of %s, and there is no such counter set", device.Name, consumed.CounterSet)
				}
				for _, name := range slices.Sorted(maps.Keys(consumed.Counters)) {
					if _, has := set[name]; !has {
						return p.invalid("device %s consumes the counter %s of %s, which has no such counter", device.Name, name, consumed.CounterSet)
					}
				}
			}
		}
	}
	return ""
}

// current returns the slices of the newest generation. There is at least one.
func (p *Pool) current() (list []*resourceapi.ResourceSlice) {
	newest := p.Slices[0].Spec.Pool.Generation
	for _, slice := range p.Slices {
		newest = max(newest, slice.Spec.Pool.Generation)
	}
	for _, slice := range p.Slices {
		if slice.Spec.Pool.Generation == newest {
			list = append(list, slice)
		}
	}
	return list
}

// seenBy mirrors NodeMatches of the allocator. New has already checked the selector.
func seenBy(node *corev1.Node, name string, all bool, selector *corev1.NodeSelector) bool {
	switch {
	case name != "":
		return node.Name == name
	case all:
		return true
	case selector != nil:
		compiled, err := nodeaffinity.NewNodeSelector(selector)
		return err == nil && compiled.Match(node)
	}
	return false
}
