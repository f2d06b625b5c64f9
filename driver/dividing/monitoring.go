package dividing

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// monitors is what is known of the monitoring groups of the default group.
type monitors struct {
	groups []numa.MonitorGroup // as last seen, also those of other tools
	room   int                 // how many groups of claims the kernel can have; 0 if it counts nothing
}

// AttributeGroup is the attribute of a share, for the container to read, that names the
// folder of resctrl in which the kernel counts what the claim uses.
const AttributeGroup = deviceclasses.DriverName + "/resctrlGroup"

// isMonitoring reports whether the node counts what claims use of caches.
func (v *State) isMonitoring() bool {
	return v.config != nil && v.config.Pools.IsMonitoring()
}

// MonitorOf returns the monitoring group of a grant. It has the CPUs that are in no class:
// a class is counted by its own group. A grant without such CPUs has no monitoring group.
func MonitorOf(grant ledger.Grant) resctrl.Monitor {
	cpus := grant.CPUs()
	for _, h := range holdings(grant) {
		cpus = cpus.Difference(h.CPUs)
	}
	return resctrl.Monitor{Name: resctrl.MonitorName(string(grant.UID)), CPUs: cpus}
}

// wantedMonitors returns the monitoring groups of all claims, the oldest first, but no
// more than there is room for.
func (v *State) wantedMonitors(recorded ledger.List) (list []resctrl.Monitor, all bool) {
	if !v.isMonitoring() {
		return nil, true
	}
	grants := recorded.Grants()
	slices.SortFunc(grants, ledger.ByAge)
	for _, grant := range grants {
		monitor := MonitorOf(grant)
		switch {
		case monitor.CPUs.IsEmpty():
		case len(list) == v.monitors.room:
			return list, false
		default:
			list = append(list, monitor)
		}
	}
	return list, true
}

// Count has the kernel count what a grant on record uses, if that is wanted. What fails is
// repaired later: a claim does without.
func (v *State) Count(grant ledger.Grant) {
	monitor := MonitorOf(grant)
	if v.Counts(grant) && (v.isMonitored(monitor.Name) || v.ourMonitors() < v.monitors.room) {
		now, _ := v.config.Host.Monitor(v.monitoring(), monitor)
		v.monitors.groups = now.Groups
	}
}

// Counts reports whether the kernel should count what the grant uses.
func (v *State) Counts(grant ledger.Grant) bool {
	return v.isMonitoring() && !MonitorOf(grant).CPUs.IsEmpty()
}

// Uncount ends the count of a claim that has ended. What fails is repaired later.
func (v *State) Uncount(claim types.UID) {
	if name := resctrl.MonitorName(string(claim)); v.isMonitored(name) {
		now, _ := v.config.Host.Unmonitor(v.monitoring(), name)
		v.monitors.groups = now.Groups
	}
}

// repairMonitors makes the monitoring groups as they should be, after the groups were read
// and the control groups were repaired. It returns what is wrong.
func (v *State) repairMonitors(wanted []resctrl.Group, recorded ledger.List) (news []string, unmeasured string) {
	now := resctrl.MonitoringOf(v.groups)
	v.monitors = monitors{now.Groups, resctrl.MonitorRoom(v.groups, wanted)}
	list, all := v.wantedMonitors(recorded)
	var outdated []string
	for _, group := range now.Groups {
		isWanted := func(m resctrl.Monitor) bool { return m.Name == group.Name }
		if resctrl.IsOurMonitor(group.Name) && !slices.ContainsFunc(list, isWanted) {
			outdated = append(outdated, group.Name)
		}
	}
	now, removed := v.config.Host.Unmonitor(now, outdated...)
	now, made := v.config.Host.Monitor(now, list...)
	v.monitors.groups = now.Groups
	for _, err := range []error{removed, made} {
		if err != nil {
			news = append(news, strings.Split(err.Error(), "\n")...)
		}
	}
	if !all && v.monitors.room > 0 {
		news = append(news, "what some claims use of caches is not measured: "+resctrl.ErrNoCounter.Error())
	}
	if v.isMonitoring() && len(v.groups.Info.Monitors) == 0 && !v.config.Pools.Divides() {
		unmeasured = "what claims use of caches is not measured: resctrl is not mounted, or the kernel counts nothing"
		news = append(news, unmeasured)
	}
	return news, unmeasured
}

// monitoring returns what the default group has, as last seen.
func (v *State) monitoring() resctrl.Monitoring {
	root, _ := v.groups.Group("")
	return resctrl.Monitoring{CPUs: root.CPUs, Groups: v.monitors.groups}
}

func (v *State) isMonitored(name string) bool {
	return slices.ContainsFunc(v.monitors.groups, func(g numa.MonitorGroup) bool { return g.Name == name })
}

func (v *State) ourMonitors() (count int) {
	for _, group := range v.monitors.groups {
		if resctrl.IsOurMonitor(group.Name) {
			count++
		}
	}
	return count
}

// CountedBytes returns what the kernel has counted for the group of a new share, whose
// counters go on where they are. A counter that cannot be read counts as one that has not
// started, because no claim waits for it.
func (v *State) CountedBytes(share *ledger.CacheShare) (before ledger.CountedBytes) {
	if !v.isMonitoring() || len(v.groups.Info.Monitors) == 0 {
		return ledger.CountedBytes{}
	}
	now, _ := v.config.Host.BytesOf(resctrl.Name(share.Group), share.L3)
	return ledger.CountedBytes{Total: ptr.Deref(now.TotalBytes, 0), Local: ptr.Deref(now.LocalBytes, 0)}
}

// withoutBytes returns the grants with counters that start again from 0 for groups that do not
// exist. The caller makes these groups next. The CDI specs stay as they are: if the checkpoint
// is lost, that of another group may be subtracted.
func (v *State) withoutBytes(recorded ledger.List) ledger.List {
	next := recorded
	for _, grant := range recorded {
		if forgotten := v.forgetting(grant.Grant); !forgotten.Equal(grant.Grant) {
			next = next.With(forgotten)
		}
	}
	return next
}

func (v *State) forgetting(grant ledger.Grant) ledger.Grant {
	for i, share := range grant.Shares {
		cache := share.Cache()
		if cache == nil || cache.Before == (ledger.CountedBytes{}) {
			continue
		}
		if _, exists := v.groups.Group(resctrl.Name(cache.Group)); exists {
			continue
		}
		again := *cache
		again.Before = ledger.CountedBytes{}
		grant.Shares = slices.Clone(grant.Shares) // recorded shares are never changed
		grant.Shares[i].Kind = &again
	}
	return grant
}

// NameGroup adds the group in which the kernel counts a share, if it does.
func (v *State) NameGroup(attributes map[string]resourceapi.DeviceAttribute, grant ledger.Grant, share ledger.Share) {
	monitor := MonitorOf(grant)
	switch cache := share.Cache(); {
	case cache != nil:
		attributes[AttributeGroup] = resourceapi.DeviceAttribute{StringValue: ptr.To(resctrl.Name(cache.Group))}
	case share.CPUs().Overlaps(monitor.CPUs) && v.isMonitored(monitor.Name):
		attributes[AttributeGroup] = resourceapi.DeviceAttribute{StringValue: ptr.To(resctrl.MonitorPath(monitor.Name))}
	}
}
