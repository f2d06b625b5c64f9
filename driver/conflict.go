package driver

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
)

// Conflict is a device that is not published, as another driver publishes it.
type Conflict = attached.Conflict

// WithoutConflicts leaves out devices that another driver publishes, by the slices
// of the node: each of the two would give them away.
func (d *Driver) WithoutConflicts(devices []resourceapi.Device, published []*resourceapi.ResourceSlice) (kept []resourceapi.Device, conflicts []Conflict) {
	return attached.WithoutConflicts(d.Machine(), d.config.NodeName, devices, published)
}
