package driver

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// CountedBytes is what the kernel has counted for a group in one cache. A counter that did
// not run is 0: the kernel starts it from there.
type CountedBytes struct {
	Total uint64 `json:"total,omitempty"` // from and to any memory
	Local uint64 `json:"local,omitempty"` // from and to the near memory
}

// monitors is what is known of the monitoring groups of the default group.
type monitors struct {
	groups []numa.MonitorGroup // as last seen, also those of other tools
	room   int                 // how many groups of claims the kernel can have; 0 if it counts nothing
}

// AttributeGroup is the attribute of a share, for the container to read, that names the
// folder of resctrl in which the kernel counts what the claim uses.
const AttributeGroup = Name + "/resctrlGroup"

// isMonitoring reports whether the node counts what claims use of caches.
func (d *Driver) isMonitoring() bool {
	return d.config.Caches != nil && d.config.Caches.Pools.IsMonitoring()
}

// MonitorOf returns the monitoring group of a grant. It has the CPUs that are in no class:
// a class is counted by its own group. A grant without such CPUs has no monitoring group.
func MonitorOf(grant Grant) resctrl.Monitor {
	cpus := grant.cpus()
	for _, h := range holdings(grant) {
		cpus = cpus.Difference(h.CPUs)
	}
	return resctrl.Monitor{Name: resctrl.MonitorName(string(grant.UID)), CPUs: cpus}
}

// wantedMonitors returns the monitoring groups of all claims, the oldest first, but no
// more than there is room for.
func (d *Driver) wantedMonitors() (list []resctrl.Monitor, all bool) {
	if !d.isMonitoring() {
		return nil, true
	}
	grants := d.grants.grants()
	slices.SortFunc(grants, byAge)
	for _, grant := range grants {
		monitor := MonitorOf(grant)
		switch {
		case monitor.CPUs.IsEmpty():
		case len(list) == d.monitors.room:
			return list, false
		default:
			list = append(list, monitor)
		}
	}
	return list, true
}

// monitorSteps returns the step that has the kernel count a grant on record; none if that
// is not wanted. It never fails: a claim does without, and RepairCaches tries again.
func (d *Driver) monitorSteps(grant Grant) []step {
	monitor := MonitorOf(grant)
	if !d.isMonitoring() || monitor.CPUs.IsEmpty() {
		return nil
	}
	return []step{{"monitor claim " + grant.name(), func() error {
		if d.isMonitored(monitor.Name) || d.ourMonitors() < d.monitors.room {
			now, _ := d.config.Caches.Host.Monitor(d.monitoring(), monitor)
			d.monitors.groups = now.Groups
		}
		return nil
	}}}
}

// removeMonitor ends the count of a claim that has ended. What fails is repaired later.
func (d *Driver) removeMonitor(claim types.UID) {
	if name := resctrl.MonitorName(string(claim)); d.isMonitored(name) {
		now, _ := d.config.Caches.Host.Unmonitor(d.monitoring(), name)
		d.monitors.groups = now.Groups
	}
}

// repairMonitors makes the monitoring groups as they should be, after d.groups was read
// and the control groups were repaired. It returns what is wrong.
func (d *Driver) repairMonitors(wanted []resctrl.Group) (news []string) {
	now := resctrl.MonitoringOf(d.groups)
	d.monitors = monitors{now.Groups, resctrl.MonitorRoom(d.groups, wanted)}
	list, all := d.wantedMonitors()
	var outdated []string
	for _, group := range now.Groups {
		isWanted := func(m resctrl.Monitor) bool { return m.Name == group.Name }
		if resctrl.IsOurMonitor(group.Name) && !slices.ContainsFunc(list, isWanted) {
			outdated = append(outdated, group.Name)
		}
	}
	now, removed := d.config.Caches.Host.Unmonitor(now, outdated...)
	now, made := d.config.Caches.Host.Monitor(now, list...)
	d.monitors.groups = now.Groups
	for _, err := range []error{removed, made} {
		for line := range strings.Lines(errText(err)) {
			news = append(news, strings.TrimSuffix(line, "\n"))
		}
	}
	if !all && d.monitors.room > 0 {
		news = append(news, "what some claims use of caches is not measured: "+resctrl.ErrNoCounter.Error())
	}
	measuring := ""
	if d.isMonitoring() && len(d.groups.Info.Monitors) == 0 && !d.config.Caches.Pools.Divides() {
		measuring = "what claims use of caches is not measured: resctrl is not mounted, or the kernel counts nothing"
		news = append(news, measuring)
	}
	d.note(&d.undone.measuring, measuring)
	return news
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// monitoring returns what the default group has, as last seen.
func (d *Driver) monitoring() resctrl.Monitoring {
	root, _ := d.groups.Group("")
	return resctrl.Monitoring{CPUs: root.CPUs, Groups: d.monitors.groups}
}

func (d *Driver) isMonitored(name string) bool {
	return slices.ContainsFunc(d.monitors.groups, func(g numa.MonitorGroup) bool { return g.Name == name })
}

func (d *Driver) ourMonitors() (count int) {
	for _, group := range d.monitors.groups {
		if resctrl.IsOurMonitor(group.Name) {
			count++
		}
	}
	return count
}

// countedBytes returns what the kernel has counted for the group of a new share, whose
// counters go on where they are. A counter that cannot be read counts as one that has not
// started, because no claim waits for it.
func (d *Driver) countedBytes(share *CacheShare) (before CountedBytes) {
	if !d.isMonitoring() || len(d.groups.Info.Monitors) == 0 {
		return CountedBytes{}
	}
	now, _ := d.config.Caches.Host.BytesOf(resctrl.Name(share.Group), share.L3)
	return CountedBytes{Total: ptr.Deref(now.TotalBytes, 0), Local: ptr.Deref(now.LocalBytes, 0)}
}

// forgetBytes records that counters of groups that do not exist start again from 0. The
// caller makes these groups next. The CDI specs stay as they are: if the checkpoint is
// lost, that of another group may be subtracted.
func (d *Driver) forgetBytes() error {
	next := d.grants
	for _, grant := range d.grants {
		if forgotten := d.withoutBytes(grant.Grant); !forgotten.equal(grant.Grant) {
			next = next.with(forgotten)
		}
	}
	if len(next) == 0 || slices.Equal(next, d.grants) {
		return nil
	}
	return perform([]step{d.recordStep("record that counters start again", next)})
}

func (d *Driver) withoutBytes(grant Grant) Grant {
	for i, share := range grant.Shares {
		cache := share.Cache()
		if cache == nil || cache.Before == (CountedBytes{}) {
			continue
		}
		if _, exists := d.groups.Group(resctrl.Name(cache.Group)); exists {
			continue
		}
		again := *cache
		again.Before = CountedBytes{}
		grant.Shares = slices.Clone(grant.Shares) // recorded shares are never changed
		grant.Shares[i].Kind = &again
	}
	return grant
}

// nameGroup adds the group in which the kernel counts a share, if it does.
func (d *Driver) nameGroup(attributes map[string]resourceapi.DeviceAttribute, grant Grant, share Share) {
	monitor := MonitorOf(grant)
	switch cache := share.Cache(); {
	case cache != nil:
		attributes[AttributeGroup] = stringAttribute(resctrl.Name(cache.Group))
	case share.CPUs().Overlaps(monitor.CPUs) && d.isMonitored(monitor.Name):
		attributes[AttributeGroup] = stringAttribute(resctrl.MonitorPath(monitor.Name))
	}
}
