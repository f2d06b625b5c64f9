// Package dividing divides level-3 caches among claims: it makes the groups of resctrl as the
// claims on record should have them, and has the kernel count what claims use. What a pool
// offers and what groups should have is decided in package caches.
package dividing

import (
	"maps"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Config says how a node divides its level-3 caches.
type Config struct {
	Pools deviceclasses.CachePools
	// Host gives ways to groups of CPUs. Only Devices of package driver does without it.
	Host *resctrl.Host
	// Options returns the options that resctrl is mounted with; see [numa.ResctrlOptions].
	// It may be nil.
	Options func() []string

	// What Config of package driver has, too; its method Dividing copies it.
	ZoneBy   string     // what one zone is, as in a NodeConfig
	Reserved cpuset.Set // CPUs that no claim gets
}

// State is what the node has divided for claims, and counts for them. The caller has one
// lock for all of its methods.
type State struct {
	config    *Config // nil if the node divides nothing
	machine   *numa.Machine
	caches    *Caches
	groups    numa.ResctrlState        // of resctrl, as last seen; only settleWays changes it
	shareable map[string]numa.Schemata // groups that the kernel has refused to make exclusive, and with what
	monitors  monitors                 // as last seen
}

// New returns the state of a node. config is nil if it divides nothing.
func New(config *Config) *State {
	return &State{config: config, caches: &Caches{why: errNotDivided}}
}

// Use takes the machine as it is now, and its caches as the kernel has them.
func (v *State) Use(machine *numa.Machine) {
	v.machine = machine
	_ = v.read() // an error is in caches
}

// Current is what is known of the caches now.
func (v *State) Current() *Caches { return v.caches }

// read takes the caches as the kernel has them now.
func (v *State) read() error {
	if v.config == nil {
		return errNotDivided
	}
	groups, next := lookAtCaches(v.machine, v.config)
	v.groups = groups
	if !next.same(v.caches) {
		if next.node != nil {
			next.lost = v.caches.lost // else the scheduler counts these classes until the next repair
			next.describe()
		}
		v.caches = next
	}
	return v.caches.why
}

// Report is what a look at the groups of resctrl found.
type Report struct {
	Changed    bool     // something else has to be published
	News       []string // what claims do not have, and warnings
	Unmeasured string   // why the node does not count what claims use of caches, although its NodeConfig says so; "" if it does
}

// Repair makes the groups of resctrl as they should be. Recorded are the grants on record. If
// what was counted before has to be forgotten, record puts that on record before the groups
// are made.
func (v *State) Repair(recorded ledger.List, record func(ledger.List) error) (report Report) {
	if v.config == nil {
		return Report{}
	}
	before := v.caches
	err := v.read()
	faults, held := make(map[caches.Key]string), allHoldings(recorded)
	var groups []resctrl.Group
	var unmade []string
	if err != nil {
		if v.config.Pools.Divides() {
			report.News = append(report.News, err.Error())
		}
		for _, h := range held {
			faults[h.Key()] = err.Error()
		}
	} else {
		v.withdrawClasses(held)
		goal := v.caches.node.Goal(held, v.groups)
		v.forgoExclusive(goal.Wanted)
		groups = goal.Wanted.Groups
		if next := v.withoutBytes(recorded); !slices.Equal(next, recorded) {
			if err := record(next); err != nil {
				report.News = append(report.News, err.Error())
			}
			recorded = next
		}
		if !goal.Reached(v.groups) {
			repaired, failed := v.config.Host.Repair(goal.Wanted)
			v.groups = repaired.State
			v.noteShareable(goal.Wanted, repaired)
			if failed != nil {
				report.News = append(report.News, strings.Split(failed.Error(), "\n")...) // an error of each group
			}
		}
		unmade = goal.Undone(v.groups)
		for _, key := range goal.Missing(v.groups) {
			faults[key] = "the kernel has no group for a claim"
		}
		for i := range held {
			if err := goal.Check(&held[i], v.groups); err != nil {
				faults[held[i].Key()] = err.Error()
			}
		}
	}
	if !maps.Equal(faults, v.caches.faults) || !slices.Equal(unmade, v.caches.unmade) {
		next := *v.caches
		next.faults, next.unmade = faults, unmade
		v.caches = &next
	}
	report.News = append(report.News, v.caches.warnings...)
	news, unmeasured := v.repairMonitors(groups, recorded)
	report.News, report.Unmeasured = append(report.News, news...), unmeasured
	report.Changed = v.caches != before
	return report
}
