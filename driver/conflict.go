package driver

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
)

// Conflict is a device that is not published because another driver publishes it.
type Conflict = attached.Conflict

// AddressesOf returns the PCI addresses of the devices in a slice of another driver that are on
// the node, in lower case.
func AddressesOf(nodeName string, slice *resourceapi.ResourceSlice) []string {
	return attached.Addresses(nodeName, slice)
}

// WithoutConflicts leaves out the devices that another driver publishes: others are these
// drivers, by PCI address. Otherwise both drivers would give out the same device.
func (d *Driver) WithoutConflicts(devices []resourceapi.Device, others map[string]string) (kept []resourceapi.Device, conflicts []Conflict) {
	return attached.WithoutConflicts(d.Machine(), devices, others)
}
