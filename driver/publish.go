package driver

import (
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Publication is what the node publishes.
type Publication struct {
	Devices  []resourceapi.Device // not to be changed
	Renewed  bool                 // they may differ from those of the call before
	Problems map[string][]string  // by device: what claims do not get of it, a clause each
}

// published is what the last Publication was made of.
type published struct {
	machine *numa.Machine
	strays  []Share
	faults  zones.Faults
	devices []resourceapi.Device
}

// Publish is what the node publishes now. Faults says, by claim, how the cgroups of its
// containers are not as they should be: zones of which the kernel does not honour a
// claim's partition are tainted. When nothing has changed, it costs a look at each
// grant. One caller at a time.
func (d *Driver) Publish(faults map[types.UID]string) Publication {
	seen := d.shown.Load()
	grants := seen.grants.grants()
	slices.SortFunc(grants, byAge)
	problems, tainted := problemsOf(seen.machine, grants, faults)
	strays := strays(seen.machine, d.config, grants)
	last := &d.published
	renewed := last.machine != seen.machine || !maps.Equal(tainted, last.faults) || !slices.EqualFunc(strays, last.strays, Share.Equal)
	if renewed {
		*last = published{seen.machine, strays, tainted, devices(seen.machine, d.config, strays, tainted)}
	}
	return Publication{last.devices, renewed, problems}
}

// problemsOf says by device what claims do not get of it, and which zones are not to
// take more of them.
func problemsOf(machine *numa.Machine, grants []Grant, faults map[types.UID]string) (problems map[string][]string, tainted zones.Faults) {
	problems, tainted = make(map[string][]string), make(zones.Faults)
	for _, grant := range grants {
		for _, share := range grant.Shares {
			add := func(format string, args ...any) {
				problems[share.Device] = append(problems[share.Device], "claim "+grant.name()+": "+fmt.Sprintf(format, args...))
			}
			if fault := share.Fault(machine); fault != "" {
				add("%s", fault)
			}
			for node := range share.Mems().All() {
				if _, online := machine.Zone(node); !online {
					add("NUMA node %d is offline", node)
				}
			}
			if offline := share.CPUs().Difference(machine.Online); !offline.IsEmpty() {
				add("cpus %s are offline", offline)
			}
			switch fault := faults[grant.UID]; {
			case fault != "" && share.KernelExclusive():
				add("cpus %s are not exclusive: %s", share.CPUs(), fault)
				for node := range share.Mems().All() {
					tainted[node] = deviceclasses.FaultPartitionInvalid
				}
			case fault != "":
				add("a container is not where it should be: %s", fault)
			}
		}
	}
	return problems, tainted
}
