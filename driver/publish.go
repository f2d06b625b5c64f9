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
	Devices  []resourceapi.Device // must not be modified
	Renewed  bool                 // they may differ from those of the previous call
	Problems map[string][]string  // by device: what claims do not get from it, one clause each
}

// published is what the last Publication was made from.
type published struct {
	machine *numa.Machine
	strays  []Share
	faults  zones.Faults
	devices []resourceapi.Device
}

// Publish returns what the node publishes now. Faults says, by claim, what is wrong
// with the cgroups of its containers. A zone is tainted if the kernel does not honour
// the partition of a claim in it. If nothing has changed, Publish only looks at each
// grant. Publish has one caller at a time.
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

// problemsOf returns, by device, what claims do not get from it. It also returns the
// NUMA nodes whose zones should not take more claims.
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
