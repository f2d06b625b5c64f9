package driver

import (
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Publication is what the node publishes.
type Publication struct {
	Devices  []resourceapi.Device // must not be modified
	Renewed  bool                 // they may differ from those of the previous call
	Problems map[string][]string  // by device: what claims do not get from it, one clause each

	// MissingHugepages says, by device, where the node has fewer hugepages than claims
	// hold. Problems have it, too.
	MissingHugepages map[string]string
	Unmet            map[string]string // as of Driver.Unmet
}

// published is what the last Publication was made from.
type published struct {
	machine  *numa.Machine
	strays   []ledger.Share
	faults   zones.Faults
	blocked  cpuset.Set
	withheld map[string]string // see withheldFunctions
	caches   *dividing.Caches
	taken    cpuset.Set
	devices  []resourceapi.Device

	gates Gates
}

// Publish returns what the node publishes now. Fault says how the cgroups of a share's
// containers differ from what they should be; "" if they do not. If the kernel does not
// grant the partition of a share, its zone gets a taint. If nothing has changed, Publish
// costs a look at each grant. It may have one caller at a time.
//
// The order of the zones follows Config.ZoneOrder, and zones without free CPUs come last. Claims
// come and go, and each write wakes every pending pod. So the order changes only if another zone
// comes first for claims of some number of CPUs, or if another thing changes. The first zone alone
// does not say that: it may have a core left that is too small for any claim.
//
// Blocked are CPUs that do not count: partitions hold them, and no grant has them. A zone
// of which they are all gets a taint.
func (d *Driver) Publish(fault func(claimUID types.UID, share ledger.Share) string, blocked cpuset.Set) Publication {
	seen := d.shown.Load()
	grants := seen.grants.Grants()
	slices.SortFunc(grants, ledger.ByAge)
	missing := missingHugepages(seen.machine, grants)
	problems, tainted := problemsOf(seen.machine, grants, missing, fault)
	seen.caches.AddProblems(problems, grants)
	d.taintBlocked(tainted, seen.machine, blocked)
	strays := strays(seen.machine, d.config, grants)
	last := &d.published
	taken := cpuset.Set{}
	for _, grant := range grants {
		taken = taken.Union(grant.CPUs())
	}
	changed := last.machine != seen.machine || !maps.Equal(tainted, last.faults) || blocked != last.blocked || taken != last.taken ||
		!maps.Equal(seen.withheld, last.withheld) || seen.caches != last.caches || seen.gates != last.gates || !slices.EqualFunc(strays, last.strays, ledger.Share.Equal)
	renewed := false
	if changed {
		all := devices(seen.machine, d.config.with(seen.gates), seen.caches, holdings{strays, blocked, taken}, tainted)
		taintWithheld(all, seen.withheld)
		foremost := func(list []resourceapi.Device) []string {
			return zones.Foremost(list, zones.Of(seen.machine, d.config.ZoneBy), d.config.Reserved.Union(blocked).Union(taken))
		}
		if renewed = last.machine == nil || !SameDevices(all, last.devices) || !slices.Equal(foremost(all), foremost(last.devices)); !renewed {
			all = last.devices
		}
		*last = published{seen.machine, strays, tainted, blocked, seen.withheld, seen.caches, taken, all, seen.gates}
	}
	return Publication{last.devices, renewed, problems, missing, d.Unmet()}
}

// SameDevices reports whether two lists have the same devices, in any order.
func SameDevices(a, b []resourceapi.Device) bool {
	byName := func(a, b resourceapi.Device) int { return strings.Compare(a.Name, b.Name) }
	return len(a) == len(b) && apiequality.Semantic.DeepEqual(slices.SortedFunc(slices.Values(a), byName), slices.SortedFunc(slices.Values(b), byName))
}

// taintWithheld taints the devices with these names.
func taintWithheld(devices []resourceapi.Device, withheld map[string]string) {
	for i := range devices {
		if fault := withheld[devices[i].Name]; fault != "" {
			devices[i].Taints = append(slices.Clip(devices[i].Taints), deviceclasses.FaultTaint(fault))
		}
	}
}

// taintBlocked adds the NUMA nodes without a CPU that is neither reserved nor blocked.
// Caches of such a node are not published at all.
func (d *Driver) taintBlocked(tainted zones.Faults, machine *numa.Machine, blocked cpuset.Set) {
	if blocked.IsEmpty() {
		return
	}
	left := make(map[int]cpuset.Set) // by the first NUMA node of a zone
	for _, zone := range zones.Of(machine, d.config.ZoneBy) {
		if cpus := zone.CPUs.Difference(d.config.Reserved); !cpus.IsEmpty() {
			left[zone.Nodes[0]] = left[zone.Nodes[0]].Union(cpus)
		}
	}
	for node, cpus := range left {
		if cpus.IsSubsetOf(blocked) && tainted[node] == "" {
			tainted[node] = deviceclasses.FaultBlocked
		}
	}
}

// problemsOf returns, by device, what claims do not get from it. It also returns the
// NUMA nodes whose zones should not take more claims.
func problemsOf(machine *numa.Machine, grants []ledger.Grant, missing map[string]string, faultOf func(types.UID, ledger.Share) string) (problems map[string][]string, tainted zones.Faults) {
	problems, tainted = make(map[string][]string), make(zones.Faults)
	for _, grant := range grants {
		for _, share := range grant.Shares {
			say := func(why string) {
				problems[share.Device] = append(problems[share.Device], "claim "+grant.FullName()+": "+why)
			}
			add := func(fault string, known ...any) {
				say(deviceclasses.FaultHealth(fault, known...))
				for node := range share.Mems().All() {
					if deviceclasses.FaultOf(fault).Taints {
						tainted[node] = fault
					}
				}
			}
			if why := share.Fault(machine); why != "" {
				say(why)
			}
			if why := missing[share.Device]; why != "" && len(share.Zone().HugepageBytes) > 0 {
				add(deviceclasses.FaultHugepages, why)
			}
			for node := range share.Mems().All() {
				if _, online := machine.Zone(node); !online {
					add(deviceclasses.FaultNodeOffline, node)
				}
			}
			if offline := share.CPUs().Difference(machine.Online); !offline.IsEmpty() {
				add(deviceclasses.FaultCPUsOffline, offline)
			}
			switch why := faultOf(grant.UID, share); {
			case why != "" && share.KernelExclusive():
				add(deviceclasses.FaultPartitionInvalid, share.CPUs(), why)
			case why != "":
				add(deviceclasses.FaultMisplaced, why)
			}
		}
	}
	return problems, tainted
}
