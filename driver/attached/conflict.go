package attached

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Conflict is a device that is not published because another driver publishes it.
type Conflict struct {
	Device  string // the name that this driver gives it
	Address string // what the other driver publishes: the device, its physical function or a virtual function
	Driver  string // the other driver
}

// String says what an operator can do.
func (c Conflict) String() string {
	return fmt.Sprintf("device %s is left out: driver %s publishes PCI function %s; exclude one of them", c.Device, c.Driver, c.Address)
}

// WithoutConflicts leaves out each device that another driver publishes, because claims of
// both drivers could get it. Others are these drivers, by what [Addresses] returns of their
// slices. If another driver publishes a virtual function, its physical function is also left
// out, and the reverse. The other devices keep their order. Devices that are not PCI functions
// are never left out.
func WithoutConflicts(machine numa.Machine, devices []resourceapi.Device, others map[string]string) (kept []resourceapi.Device, conflicts []Conflict) {
	for _, d := range devices {
		address := stringOf(d, deviceclasses.AttributePCIBusID)
		related := []string{address, stringOf(d, deviceclasses.AttributePhysicalFunction)}
		if f := find(machine, address); f != nil {
			related = append(related, f.VirtFns...)
		}
		if address, ok := firstOf(others, related); ok {
			conflicts = append(conflicts, Conflict{d.Name, address, others[address]})
			continue
		}
		kept = append(kept, d)
	}
	return kept, conflicts
}

// addressKeys are the attributes with the PCI address of a device that drivers publish
// besides resource.kubernetes.io/pciBusID or in its place. Read in dranet 1.4.0, AMD's driver
// of October 2025 and the driver of the SR-IOV network operator.
var addressKeys = []resourceapi.FullyQualifiedName{
	"dra.net/pciAddress", "gpu.amd.com/pciAddr", "sriovnetwork.k8snetworkplumbingwg.io/pciAddress",
}

// addressOf returns the PCI address of a device of another driver, "" if it publishes none.
func addressOf(driver string, device resourceapi.Device) string {
	for _, key := range append([]resourceapi.FullyQualifiedName{resourceapi.FullyQualifiedName(deviceclasses.AttributePCIBusID)}, addressKeys...) {
		if value, has := spelling.Attribute(driver, device.Attributes, key); has && value.StringValue != nil {
			return *value.StringValue
		}
	}
	return ""
}

// Addresses returns the PCI addresses of the devices in a slice of another driver that are on
// the node, in lower case. Slices of this driver have none, and neither have those that select
// nodes by labels.
func Addresses(nodeName string, slice *resourceapi.ResourceSlice) (addresses []string) {
	if slice.Spec.Driver == deviceclasses.DriverName {
		return nil
	}
	isHere := func(name *string) bool { return name != nil && *name == nodeName }
	for _, d := range slice.Spec.Devices {
		if !isHere(slice.Spec.NodeName) && !isHere(d.NodeName) {
			continue
		}
		// Another program wrote it: what is no address would be words of a file, and of events.
		if address := strings.ToLower(addressOf(slice.Spec.Driver, d)); numa.IsPCIAddress(address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

func firstOf(drivers map[string]string, addresses []string) (address string, ok bool) {
	for _, address := range addresses {
		if drivers[address] != "" {
			return address, true
		}
	}
	return "", false
}
