package attached

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Conflict is a device that is not published, as another driver publishes it.
type Conflict struct {
	Device  string // its name here
	Address string // what is published there: itself, its physical function or a virtual one
	Driver  string // whose it is
}

// String says what an operator can do.
func (c Conflict) String() string {
	return fmt.Sprintf("device %s is left out: driver %s publishes PCI function %s; exclude one of them", c.Device, c.Driver, c.Address)
}

// WithoutConflicts leaves out devices that another driver on the node publishes in
// one of the slices, for both would give them away. So does a physical function
// of which it publishes a virtual one, and the reverse. Slices of other nodes,
// of this driver, and those that name their nodes by labels are not looked at.
// The devices stay in order; those that are no PCI functions stay all.
func WithoutConflicts(machine numa.Machine, nodeName string, devices []resourceapi.Device, published []*resourceapi.ResourceSlice) (kept []resourceapi.Device, conflicts []Conflict) {
	drivers := map[string]string{} // by address
	for _, slice := range published {
		if slice.Spec.Driver != domain {
			addAddresses(drivers, nodeName, slice)
		}
	}
	for _, d := range devices {
		address := stringOf(d, AttributePCIBusID)
		related := []string{address, stringOf(d, AttributePhysFn)}
		if f := find(machine, address); f != nil {
			related = append(related, f.VirtFns...)
		}
		if address, ok := firstOf(drivers, related); ok {
			conflicts = append(conflicts, Conflict{d.Name, address, drivers[address]})
			continue
		}
		kept = append(kept, d)
	}
	return kept, conflicts
}

// addAddresses adds those of the slice's devices that are on the node.
func addAddresses(drivers map[string]string, nodeName string, slice *resourceapi.ResourceSlice) {
	isHere := func(name *string) bool { return name != nil && *name == nodeName }
	for _, d := range slice.Spec.Devices {
		if !isHere(slice.Spec.NodeName) && !isHere(d.NodeName) {
			continue
		}
		if address := stringOf(d, AttributePCIBusID); address != "" {
			drivers[strings.ToLower(address)] = slice.Spec.Driver
		}
	}
}

func firstOf(drivers map[string]string, addresses []string) (address string, ok bool) {
	for _, address := range addresses {
		if drivers[address] != "" {
			return address, true
		}
	}
	return "", false
}
