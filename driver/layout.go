package driver

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// layout is the machine as it was last read, and what follows from it. It is replaced, never
// changed.
type layout struct {
	machine   *numa.Machine
	zones     []zones.Zone                  // as they are published
	picker    *pick.Picker                  // of CPUs
	grantable cpuset.Set                    // CPUs that a claim may ever get
	devices   map[string]resourceapi.Device // that the node would publish if there were no claims, by name
}

// newLayout returns the layout without the devices.
func newLayout(machine *numa.Machine, config *Config) *layout {
	l := &layout{machine: machine, zones: zones.Of(machine, config.ZoneBy), picker: pick.New(*machine)}
	for i := range machine.Zones {
		l.grantable = l.grantable.Union(machine.Zones[i].CPUs)
	}
	l.grantable = l.grantable.Difference(config.Reserved)
	return l
}

// with returns the layout with these devices.
func (l *layout) with(devices []resourceapi.Device) *layout {
	next := *l
	next.devices = make(map[string]resourceapi.Device, len(devices))
	for _, device := range devices {
		next.devices[device.Name] = device
	}
	return &next
}
