package inventory

import (
	"fmt"

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
	// Incomplete says which slices of the pool are missing; "" means none. The scheduler
	// allocates no device of an incomplete pool.
	Incomplete string

	order int // its number in the inventory, which identifies it
}

// Shared reports whether several claims can hold parts of the device.
func (d *Device) Shared() bool { return ptr.Deref(d.AllowMultipleAllocations, false) }

// devicesFor returns the devices in the current slices that the node can see, in the
// order of the slices.
func (p *Pool) devicesFor(node *corev1.Node, order map[*resourceapi.Device]int) (list []Device) {
	current := p.current()
	incomplete := ""
	if wanted := current[0].Spec.Pool.ResourceSliceCount; wanted != int64(len(current)) {
		incomplete = fmt.Sprintf("pool %s of driver %s is incomplete: %d of %d ResourceSlices exist", p.ID.Name, p.ID.Driver, len(current), wanted)
	}
	for _, slice := range current {
		whole := seenBy(node, ptr.Deref(slice.Spec.NodeName, ""), ptr.Deref(slice.Spec.AllNodes, false), slice.Spec.NodeSelector)
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			alone := ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) &&
				seenBy(node, ptr.Deref(d.NodeName, ""), ptr.Deref(d.AllNodes, false), d.NodeSelector)
			if whole || alone {
				id := allocation.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)
				list = append(list, Device{d, slice, id, incomplete, order[d]})
			}
		}
	}
	return list
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
