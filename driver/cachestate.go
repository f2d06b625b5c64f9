package driver

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Caches says how a node divides its level-3 caches.
type Caches struct {
	Pools deviceclasses.CachePools
	// Host gives ways to groups of CPUs. Only [Devices] does without it.
	Host *resctrl.Host
	// Options returns the options that resctrl is mounted with; see [numa.ResctrlOptions].
	// It may be nil.
	Options func() []string
}

// cacheState is what is known of the caches. It is replaced, never changed.
type cacheState struct {
	node     *caches.Node
	why      error                 // node is nil because of it
	machine  *numa.Machine         // that node was made of
	settings caches.Settings       // that node was made with
	info     *numa.Resctrl         // that node was made with
	devices  []resourceapi.Device  // of node
	warnings []string              // about groups of other tools, and pools that are not published
	missing  []string              // pools that are not published, whatever claims hold
	faults   map[caches.Key]string // why a claim does not have what it should
	lost     map[int]int           // classes of each cache that claims cannot have; see [caches.Node.Lost]
}

// get returns the caches, or why there are none.
func (s *cacheState) get() (caches.Node, error) {
	if s.node == nil {
		return caches.Node{}, s.why
	}
	return *s.node, nil
}

// cachesOf reads what a machine has for claims. machine.Resctrl counts if nothing is known
// of the groups.
func cachesOf(machine *numa.Machine, config Config, groups *numa.ResctrlState) *cacheState {
	if config.Caches == nil || !config.Caches.Pools.Divides() {
		return &cacheState{why: errNotDivided}
	}
	state := &cacheState{settings: caches.Settings{ZoneBy: config.ZoneBy, Pools: config.Caches.Pools, Reserved: config.Reserved}, info: machine.Resctrl}
	if groups != nil {
		state.info, state.settings.Foreign = &groups.Info, caches.ForeignGroups(*groups)
	}
	if config.Caches.Options != nil {
		state.settings.Options = config.Caches.Options()
	}
	mounted := *machine
	mounted.Resctrl = state.info
	node, err := caches.Of(&mounted, state.settings)
	if err != nil {
		state.why = fmt.Errorf("caches are not published: %w", err)
		return state
	}
	state.node = &node
	state.describe()
	return state
}

// describe makes the devices of the node.
func (s *cacheState) describe() {
	devices, warnings := s.node.Devices(s.lost)
	s.devices, s.warnings = devices, slices.Concat(s.node.Warnings, warnings)
	if !s.settings.Pools.Restore {
		_, s.missing = s.node.Devices(nil)
	}
}

// undone says why not all caches are divided; "" if they are, or should not be.
func (s *cacheState) undone() string {
	if s.node == nil && !errors.Is(s.why, errNotDivided) {
		return s.why.Error()
	}
	return strings.Join(s.missing, "; ")
}

// same reports whether the machine is the same, and the kernel and other tools leave the
// same of it.
func (s *cacheState) same(other *cacheState) bool {
	return s.machine == other.machine && fmt.Sprint(s.why) == fmt.Sprint(other.why) &&
		slices.Equal(s.settings.Options, other.settings.Options) && reflect.DeepEqual(s.info, other.info) && reflect.DeepEqual(s.settings.Foreign, other.settings.Foreign)
}

// lookAtCaches reads the groups of resctrl, and what the machine then has for claims.
func lookAtCaches(machine *numa.Machine, config Config) (groups numa.ResctrlState, state *cacheState) {
	groups, err := config.Caches.Host.Read()
	var known *numa.ResctrlState
	if err == nil {
		known = &groups
	}
	withoutResctrl := *machine
	withoutResctrl.Resctrl = nil
	state = cachesOf(&withoutResctrl, config, known)
	state.machine = machine
	if err != nil && !errors.Is(err, resctrl.ErrNotMounted) && !errors.Is(state.why, errNotDivided) {
		state.why = fmt.Errorf("caches are not published: %w", err)
	}
	return groups, state
}

// WhyNoCaches says why a node publishes no caches although its NodeConfig divides them; nil
// if it publishes them, or has no pools.
func WhyNoCaches(machine *numa.Machine, config Config) error {
	if config.Caches == nil || !config.Caches.Pools.Divides() {
		return nil
	}
	_, state := lookAtCaches(machine, config)
	return state.why
}

// readCaches takes the caches as the kernel has them now. The caller holds the lock.
func (d *Driver) readCaches() error {
	if d.config.Caches == nil {
		if d.caches == nil {
			d.caches = &cacheState{why: errNotDivided}
		}
		return errNotDivided
	}
	groups, next := lookAtCaches(d.machine, d.config)
	d.groups = groups
	if d.caches == nil || !next.same(d.caches) {
		if d.caches != nil && next.node != nil {
			next.lost = d.caches.lost // else the scheduler counts these classes until the next repair
			next.describe()
		}
		d.caches = next
	}
	return d.caches.why
}

// holdings returns what a grant has of caches, with the CPUs that it is for.
func holdings(grant Grant) []caches.Holding { return appendHoldings(nil, &grant) }

// appendHoldings appends what holdings returns. A holding has a set of CPUs, which is
// 1 KiB, so it is made in its place.
func appendHoldings(list []caches.Holding, grant *Grant) []caches.Holding {
	for _, share := range grant.Shares {
		cache := share.Cache()
		if cache == nil {
			continue
		}
		list = append(list, caches.Holding{Group: cache.Group, Joined: grant.joins(cache), Ask: caches.Ask{
			Device: share.Device, Cache: cache.L3, Pool: cache.Pool, MinWays: cache.Ways, MaxWays: cache.maxWays(),
			Bandwidth: cache.BandwidthPercent + cache.BandwidthMBps, // one of them is 0
		}})
		h := &list[len(list)-1]
		switch {
		case cache.BandwidthPercent != 0:
			h.Unit = deviceclasses.CapacityBandwidthPercent
		case cache.BandwidthMBps != 0:
			h.Unit = deviceclasses.CapacityBandwidthMBps
		}
		for _, other := range grant.Shares {
			if other.Request == cache.CPUs {
				h.CPUs = h.CPUs.Union(other.CPUs())
			}
		}
	}
	return list
}

// allHoldings returns what all grants have, the oldest first.
func (d *Driver) allHoldings() []caches.Holding {
	grants := slices.Clone(d.grants)
	slices.SortFunc(grants, func(a, b *listedGrant) int { return byAge(a.Grant, b.Grant) })
	list := make([]caches.Holding, 0, len(grants))
	for _, grant := range grants {
		list = appendHoldings(list, &grant.Grant)
	}
	return list
}

// waysSteps returns the step that gives a grant on record its ways; none if it has none.
func (d *Driver) waysSteps(grant Grant) []step {
	if len(cachesIn(grant)) == 0 {
		return nil
	}
	return []step{{"give claim " + grant.name() + " its ways", func() error { return d.giveWays(grant) }}}
}

// giveWays gives the claims of a grant's caches their ways, and returns why this grant
// does not have them. It compares with the groups as they were last seen, at most a second
// ago, because reading all of them takes longer than all else of Prepare.
func (d *Driver) giveWays(grant Grant) error {
	if _, err := d.caches.get(); err != nil {
		return err
	}
	own := holdings(grant)
	goal := d.caches.node.GoalIn(cachesIn(grant), d.allHoldings(), d.groups)
	if len(goal.Moves) > 1 {
		if err := d.config.Caches.Host.Move(goal.Moves); err != nil {
			return err
		}
	}
	failed := d.settleWays(goal, own)
	for i := range own {
		if err := goal.Check(&own[i], d.groups); err != nil && failed != nil {
			return fmt.Errorf("%w: %w", err, inOneLine{failed})
		} else if err != nil {
			return err
		}
	}
	return nil
}

// takeWays gives back the ways of a grant that has ended. What fails is repaired later: no
// pod has to wait for it.
func (d *Driver) takeWays(ended Grant) {
	if _, err := d.caches.get(); err == nil {
		_ = d.settleWays(d.caches.node.GoalIn(cachesIn(ended), d.allHoldings(), d.groups), nil) // RepairCaches reports what is wrong
	}
}

// cachesIn returns the ids of the caches that a grant has a part of.
func cachesIn(grant Grant) (ids []int) {
	for _, share := range grant.Shares {
		if cache := share.Cache(); cache != nil {
			ids = append(ids, cache.L3)
		}
	}
	return ids
}

// settleWays writes the groups that differ from the goal, and those of some holdings. It
// takes what the kernel made of them.
func (d *Driver) settleWays(goal caches.Goal, own []caches.Holding) error {
	d.forgoExclusive(goal.Wanted)
	wanted := goal.Differing(d.groups, own)
	if len(wanted.Groups) == 0 {
		return nil
	}
	report, err := d.config.Caches.Host.ApplyTo(d.groups, wanted)
	d.noteShareable(wanted, report)
	for _, group := range report.State.Groups {
		if i := slices.IndexFunc(d.groups.Groups, func(g numa.ResctrlGroup) bool { return g.Name == group.Name }); i >= 0 {
			d.groups.Groups[i] = group
		} else {
			d.groups.Groups = append(d.groups.Groups, group)
		}
	}
	return err
}

// noteShareable remembers which of the wanted groups the kernel did not make exclusive.
func (d *Driver) noteShareable(wanted resctrl.Wanted, report resctrl.Report) {
	if d.shareable == nil {
		d.shareable = make(map[string]numa.Schemata)
	}
	for i := range wanted.Groups {
		group := &wanted.Groups[i]
		refused := slices.ContainsFunc(report.Shared, func(m resctrl.Missing) bool { return m.Group == group.Name })
		if refused {
			d.shareable[group.Name] = group.Schemata
		} else if group.Exclusive {
			delete(d.shareable, group.Name)
		}
	}
}

// forgoExclusive does not ask the kernel again for what it has refused to make exclusive.
func (d *Driver) forgoExclusive(wanted resctrl.Wanted) {
	for i := range wanted.Groups {
		group := &wanted.Groups[i]
		if refused, known := d.shareable[group.Name]; known && reflect.DeepEqual(refused, group.Schemata) {
			group.Exclusive = false
		}
	}
}

// CacheReport is what a look at the groups of resctrl found.
type CacheReport struct {
	Changed bool     // something else has to be published
	News    []string // what claims do not have, and warnings
}

// RepairCaches makes the groups of resctrl as they should be: after a start, when CPUs
// come and go, when resctrl was mounted again, and when another program wrote there. Call
// it about once a second.
func (d *Driver) RepairCaches() CacheReport {
	if d.config.Caches == nil {
		return CacheReport{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return CacheReport{}
	}
	return d.repairCaches()
}

func (d *Driver) repairCaches() (report CacheReport) {
	before := d.shown.Load().caches
	err := d.readCaches()
	faults, held := make(map[caches.Key]string), d.allHoldings()
	var groups []resctrl.Group
	if err != nil {
		if d.config.Caches.Pools.Divides() {
			report.News = append(report.News, err.Error())
		}
		for _, h := range held {
			faults[h.Key()] = err.Error()
		}
	} else {
		d.withdrawClasses(held)
		goal := d.caches.node.Goal(held, d.groups)
		d.forgoExclusive(goal.Wanted)
		groups = goal.Wanted.Groups
		if err := d.forgetBytes(); err != nil {
			report.News = append(report.News, err.Error())
		}
		if !goal.Reached(d.groups) {
			repaired, failed := d.config.Caches.Host.Repair(goal.Wanted)
			d.groups = repaired.State
			d.noteShareable(goal.Wanted, repaired)
			if failed != nil {
				report.News = append(report.News, strings.Split(failed.Error(), "\n")...) // an error of each group
			}
		}
		for _, key := range goal.Missing(d.groups) {
			faults[key] = "the kernel has no group for a claim"
		}
		for i := range held {
			if err := goal.Check(&held[i], d.groups); err != nil {
				faults[held[i].Key()] = err.Error()
			}
		}
	}
	if !maps.Equal(faults, d.caches.faults) {
		next := *d.caches
		next.faults = faults
		d.caches = &next
	}
	report.News = append(report.News, d.caches.warnings...)
	report.News = append(report.News, d.repairMonitors(groups)...)
	if d.caches != before {
		report.Changed = true
		d.useDevices()
		d.show()
	}
	return report
}

// withdrawClasses takes the classes from the published devices that claims with these
// holdings keep from claims of other caches.
func (d *Driver) withdrawClasses(held []caches.Holding) {
	lost := d.caches.node.Lost(held)
	if maps.Equal(lost, d.caches.lost) {
		return
	}
	next := *d.caches
	next.lost = lost
	next.describe()
	d.caches = &next
}

// published returns the devices of the caches. A cache whose claims do not have what they
// should has a taint.
func (s *cacheState) published() []resourceapi.Device {
	devices := slices.Clone(s.devices)
	for i := range devices {
		cache, _, _ := caches.Parse(devices[i].Name)
		for key := range s.faults {
			if key.Cache == cache {
				devices[i].Taints = []resourceapi.DeviceTaint{faultTaint(deviceclasses.FaultWays)}
			}
		}
	}
	return devices
}

// addProblems adds what claims do not get from caches.
func (s *cacheState) addProblems(problems map[string][]string, grants []Grant) {
	if len(s.faults) == 0 {
		return
	}
	for _, grant := range grants {
		for _, h := range holdings(grant) {
			if fault := s.faults[h.Key()]; fault != "" {
				problems[h.Device] = append(problems[h.Device], fmt.Sprintf("claim %s: %s", grant.name(), fault))
			}
		}
	}
}

// inOneLine is an error whose text has one line, although it joins several errors.
type inOneLine struct{ error }

func (e inOneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }
func (e inOneLine) Unwrap() error { return e.error }
