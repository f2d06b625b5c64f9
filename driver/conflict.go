package driver

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
)

// Conflict is a device that is not published because another driver publishes it.
type Conflict = attached.Conflict

// WithoutConflicts leaves out the devices that another driver publishes in the node's
// ResourceSlices. Otherwise both drivers would give out the same device.
func (d *Driver) WithoutConflicts(devices []resourceapi.Device, published []*resourceapi.ResourceSlice) (kept []resourceapi.Device, conflicts []Conflict) {
	return attached.WithoutConflicts(d.Machine(), d.config.NodeName, devices, published)
}
