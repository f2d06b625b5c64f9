// Package capacities reads names of capacities as the scheduler of Kubernetes 1.38 does. To
// it, x and D/x are the same capacity of a device of driver D, in slices, in claims and in
// allocations. The allocator of 1.37 compares names letter by letter. So it gets slices and
// claims in which all have the same spelling, without the driver's domain.
package capacities

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Names is how the capacities of a cluster are spelled.
type Names struct {
	known     map[string]map[resourceapi.QualifiedName]bool // capacities by driver, in one spelling
	qualified map[allocation.DeviceID]map[resourceapi.QualifiedName]bool
}

// New returns the names of the slices, and the slices in one spelling. It does not change
// them. If a device publishes both spellings of a capacity, the one with the domain counts.
func New(published []*resourceapi.ResourceSlice) (*Names, []*resourceapi.ResourceSlice) {
	n := &Names{make(map[string]map[resourceapi.QualifiedName]bool), make(map[allocation.DeviceID]map[resourceapi.QualifiedName]bool)}
	list := make([]*resourceapi.ResourceSlice, len(published))
	for i, slice := range published {
		list[i] = n.slice(slice)
	}
	return n, list
}

func (n *Names) slice(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	driver := slice.Spec.Driver
	if n.known[driver] == nil {
		n.known[driver] = make(map[resourceapi.QualifiedName]bool)
	}
	changed := slice
	for i := range slice.Spec.Devices {
		device := &slice.Spec.Devices[i]
		var qualified map[resourceapi.QualifiedName]bool
		for name := range device.Capacity {
			short := spelling.Capacity(driver, name)
			n.known[driver][short] = true
			if short == name {
				continue
			}
			if qualified == nil {
				qualified = make(map[resourceapi.QualifiedName]bool)
			}
			qualified[short] = true
		}
		if qualified == nil {
			continue
		}
		n.qualified[allocation.MakeDeviceID(driver, slice.Spec.Pool.Name, device.Name)] = qualified
		if changed == slice {
			changed = slice.DeepCopy()
		}
		respelled := changed.Spec.Devices[i].Capacity
		for short := range qualified {
			long := qualify(driver, short)
			respelled[short] = respelled[long]
			delete(respelled, long)
		}
	}
	return changed
}

func qualify(driver string, short resourceapi.QualifiedName) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(driver + "/" + string(short))
}

// Claim returns the spec of a claim with the names that the slices of New have. If there is
// nothing to change, that is the argument. A request with both spellings of a capacity keeps
// them ([Fault]).
func (n *Names) Claim(spec *resourceapi.ResourceClaimSpec) *resourceapi.ResourceClaimSpec {
	if !slices.ContainsFunc(spec.Devices.Requests, n.changes) {
		return spec
	}
	spec = spec.DeepCopy()
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if e := request.Exactly; e != nil {
			e.Selectors = append(e.Selectors, n.rename(e.Capacity)...)
		}
		for k := range request.FirstAvailable {
			s := &request.FirstAvailable[k]
			s.Selectors = append(s.Selectors, n.rename(s.Capacity)...)
		}
	}
	return spec
}

func (n *Names) changes(request resourceapi.DeviceRequest) bool {
	if e := request.Exactly; e != nil && len(n.owners(e.Capacity)) > 0 {
		return true
	}
	return slices.ContainsFunc(request.FirstAvailable, func(s resourceapi.DeviceSubRequest) bool { return len(n.owners(s.Capacity)) > 0 })
}

// rename changes the names of the amounts. It returns selectors that a request then needs,
// because devices of another driver have a capacity of the same name.
func (n *Names) rename(capacity *resourceapi.CapacityRequirements) (selectors []resourceapi.DeviceSelector) {
	owners := n.owners(capacity)
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		driver := owners[name]
		short := spelling.Capacity(driver, name)
		capacity.Requests[short] = capacity.Requests[name]
		delete(capacity.Requests, name)
		for other, has := range n.known {
			if other != driver && has[short] {
				selector := &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}
				selectors = append(selectors, resourceapi.DeviceSelector{CEL: selector})
				break
			}
		}
	}
	return selectors
}

// owners returns the names that have the domain of a driver and that can do without it.
func (n *Names) owners(capacity *resourceapi.CapacityRequirements) map[resourceapi.QualifiedName]string {
	if capacity == nil {
		return nil
	}
	owners := make(map[resourceapi.QualifiedName]string)
	for name := range capacity.Requests {
		driver, id, qualified := strings.Cut(string(name), "/")
		if _, twice := capacity.Requests[resourceapi.QualifiedName(id)]; qualified && !twice && n.known[driver] != nil {
			owners[name] = driver
		}
	}
	return owners
}

// Restore gives an allocation the names that the slices of the cluster have. Nil names
// change nothing.
func (n *Names) Restore(allocation *resourceapi.AllocationResult) {
	if n == nil {
		return
	}
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		for short := range n.qualified[deviceID(result)] {
			if amount, has := result.ConsumedCapacity[short]; has {
				result.ConsumedCapacity[qualify(result.Driver, short)] = amount
				delete(result.ConsumedCapacity, short)
			}
		}
	}
}

func deviceID(r *resourceapi.DeviceRequestAllocationResult) allocation.DeviceID {
	return allocation.MakeDeviceID(r.Driver, r.Pool, r.Device)
}

// Doubtful reports whether there may be devices for which the amounts have a [Fault].
func Doubtful(capacity *resourceapi.CapacityRequirements) bool {
	if capacity == nil {
		return false
	}
	for name, amount := range capacity.Requests {
		_, id, qualified := strings.Cut(string(name), "/")
		if _, twice := capacity.Requests[resourceapi.QualifiedName(id)]; amount.Sign() < 0 || qualified && twice {
			return true
		}
	}
	return false
}

// Fault returns the error with which Kubernetes 1.38 gives up on a pod when it compares the
// amounts with the capacities of a device: one is asked for in both spellings, or less than
// nothing. It returns nil if there is none, or if the device lacks a capacity. With both
// spellings, chance decides then whether the scheduler gives up or tries another device: it
// reads the amounts in random order.
func Fault(driver string, device *resourceapi.Device, capacity *resourceapi.CapacityRequirements) (err error) {
	seen := make(map[resourceapi.QualifiedName]bool)
	for _, name := range slices.Sorted(maps.Keys(capacity.Requests)) {
		short := spelling.Capacity(driver, name)
		if _, has := device.Capacity[short]; !has {
			return nil
		}
		amount := capacity.Requests[name]
		switch {
		case err != nil:
		case seen[short]:
			err = fmt.Errorf("capacity %q requested both as %q and as %q", short, short, qualify(driver, short))
		case amount.Sign() < 0:
			err = fmt.Errorf("capacity %q: capacity value is negative: request %s", name, amount.String())
		}
		seen[short] = true
	}
	return err
}
