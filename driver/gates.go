package driver

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Gates are feature gates of the API server: what it stores of devices. Only a dry run tells
// that, so a Driver begins without them.
type Gates struct {
	NodeAllocatable bool // devices say how the scheduler counts claims in the node's allocatable
	NUMANodeLists   bool // zones of several NUMA nodes have the list of them
}

// SetGates changes [Config.Gates], from the next Publish on.
func (d *Driver) SetGates(change func(*Gates)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.gates)
	d.useDevices()
	d.show()
}

// HasList reports whether the device has a list of NUMA nodes.
func HasList(device resourceapi.Device) bool {
	return len(device.Attributes[deviceclasses.AttributeNUMANode].IntValues) > 0
}
