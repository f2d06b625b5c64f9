package resctrl

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// step is one write to a file of a group.
type step struct {
	group string // empty for the default group
	file  string
	text  string
}

func (s step) name() string { return path.Join(cmp.Or(s.group, "."), s.file) }

// Files of a group.
const (
	schemataFile = "schemata"
	cpusFile     = "cpus_list"
	modeFile     = "mode"
)

// plan has the writes that give the groups what they should have, in their order. The
// invariant, between any two writes, for each cache and any two groups with tasks or CPUs
// of it, if it held before:
//
//	goal(a) ∩ goal(b) = ∅  ⇒  fill(a) ∩ fill(b) = ∅
//
// The default group counts as one that has CPUs of each cache, because it gets those that
// others lose.
type plan struct {
	members []*member // the default group comes first
	online  cpuset.Set
	foreign []numa.ResctrlGroup
	caches  []Cache
	steps   []step
	// errs says of groups why they do not get what they should have.
	errs map[string]error
}

// newPlan compares the state with what is wanted. Groups in failed stay as they are. A
// group that does not exist is left out.
func newPlan(state numa.ResctrlState, want Wanted, failed map[string]error) *plan {
	p := &plan{online: state.Online(), caches: want.Caches, errs: map[string]error{}}
	for _, group := range state.Groups {
		wish := Group{Schemata: want.Default}
		if group.Name != "" {
			i := slices.IndexFunc(want.Groups, func(g Group) bool { return g.Name == group.Name })
			if i < 0 {
				p.foreign = append(p.foreign, group)
				continue
			}
			wish = want.Groups[i]
		}
		m, err := newMember(state.Info, group, wish)
		m.failed = failed[group.Name] != nil
		p.members = append(p.members, m)
		if err != nil && !m.failed {
			p.fail(m, err)
		}
	}
	p.share()
	for _, m := range p.members {
		if m.isDefault {
			p.writeFree(m) // before it gets CPUs of others
		}
	}
	p.dropCPUs()
	p.writeSchemata()
	p.addCPUs()
	p.keepOthersOut()
	return p
}

func (p *plan) fail(m *member, err error) {
	m.failed = true
	p.errs[m.want.Name] = err
}

func (p *plan) add(m *member, file, text string) {
	p.steps = append(p.steps, step{m.want.Name, file, text})
}

// share makes groups shareable whose masks change, because the kernel compares masks of an
// exclusive group also with those of groups that have no CPUs.
func (p *plan) share() {
	for _, m := range p.members {
		if !m.failed && m.mode == numa.ModeExclusive && (!m.want.Exclusive || len(m.pending()) > 0) {
			m.mode = numa.ModeShareable
			p.add(m, modeFile, string(m.mode)+"\n")
		}
	}
}

// keepOthersOut makes groups exclusive.
func (p *plan) keepOthersOut() {
	for _, m := range p.members {
		if !m.failed && m.want.Exclusive && m.mode == numa.ModeShareable {
			p.add(m, modeFile, string(numa.ModeExclusive)+"\n")
		}
	}
}

// dropCPUs gives the default group the CPUs that a group should not have. A group with
// more CPUs than it should have would use its new masks on them.
func (p *plan) dropCPUs() {
	for _, m := range p.members {
		if !m.isDefault && !m.failed {
			p.setCPUs(m, m.cpus.Intersection(m.want.CPUs))
		}
	}
}

// addCPUs gives groups their CPUs, those of other programs' groups excepted.
func (p *plan) addCPUs() {
	for _, m := range p.members {
		if m.isDefault || m.failed {
			continue
		}
		if err := p.mayHaveCPUs(m); err != nil {
			p.fail(m, err)
			continue
		}
		cpus := m.want.CPUs.Intersection(p.online)
		for _, group := range p.foreign {
			if taken := group.CPUs.Intersection(cpus); !taken.IsEmpty() && group.Mode != numa.ModeLocked {
				p.fail(m, fmt.Errorf("group %q has cpus %s", group.Name, taken))
				cpus = cpus.Difference(taken)
			}
		}
		p.setCPUs(m, cpus)
	}
}

func (p *plan) setCPUs(m *member, cpus cpuset.Set) {
	if cpus != m.cpus {
		m.cpus = cpus
		p.add(m, cpusFile, cpus.String()+"\n")
	}
}

// mayHaveCPUs returns an error if another group has a way of a cache that it should not
// share with this one.
func (p *plan) mayHaveCPUs(m *member) error {
	for _, mask := range m.masks {
		at := placeOf(mask)
		if !p.cpusOf(at).Overlaps(m.want.CPUs) {
			continue
		}
		if others := p.inTheWay(m, at, m.goal(at)); len(others) > 0 {
			return waysError(others[0], at)
		}
	}
	return nil
}

// cpusOf returns the CPUs of a cache.
func (p *plan) cpusOf(at place) cpuset.Set {
	for _, cache := range p.caches {
		if cache.Level == at.level && cache.ID == at.id {
			return cache.CPUs
		}
	}
	return p.online
}

// uses reports whether a group fills ways of a cache.
func (p *plan) uses(m *member, at place) bool {
	return m.isDefault || m.hasTasks || p.cpusOf(at).Overlaps(m.cpus)
}

// inTheWay returns the groups that use some ways of a cache that they should not share
// with m.
func (p *plan) inTheWay(m *member, at place, ways uint64) (list []*member) {
	for _, other := range p.members {
		if other != m && ways&other.fill(at) != 0 && m.goal(at)&other.goal(at) == 0 && p.uses(other, at) {
			list = append(list, other)
		}
	}
	return list
}

// waitsFor returns the groups that have to move before m does. A way that both fill
// already is no reason to wait: that is how another program left them.
func (p *plan) waitsFor(m *member, at place) []*member {
	if !p.uses(m, at) {
		return nil
	}
	return p.inTheWay(m, at, m.goal(at)&^m.fill(at))
}

func waysError(other *member, at place) error {
	return fmt.Errorf("%s: %s has ways %x: want %x", at, other.name, other.fill(at), other.goal(at))
}

// writeSchemata writes masks and bandwidths. The default group comes first, because it
// shrinks to make room. A mask waits until those in its way have moved.
func (p *plan) writeSchemata() {
	for {
		progress, waiting := false, false
		for _, m := range p.members {
			progress = p.writeFree(m) || progress
			waiting = waiting || len(m.pending()) > 0
		}
		if !waiting {
			return
		}
		if !progress {
			p.unblock()
		}
	}
}

// writeFree writes what does not have to wait, and reports whether there was something.
func (p *plan) writeFree(m *member) bool {
	return p.write(m, slices.DeleteFunc(m.pending(), func(at place) bool { return len(p.waitsFor(m, at)) > 0 }))
}

// write writes the masks of some caches, and all bandwidths.
func (p *plan) write(m *member, places []place) bool {
	if m.failed {
		return false
	}
	schemata := numa.Schemata{Masks: m.write(places), Bandwidths: m.bandwidths}
	m.bandwidths = nil
	if schemata.IsEmpty() {
		return false
	}
	schemata.Sort()
	p.add(m, schemataFile, schemata.String())
	return true
}

// unblock lets one mask move although another one is in its way that waits as well. It
// takes the CPUs of the cache from one of the two groups until the end of the plan. If
// neither can be without, because tasks belong to it, they overlap for one step. A group
// waits in vain for one that failed.
func (p *plan) unblock() {
	var forced *member
	var at place
	for _, m := range p.members {
		for _, place := range m.pending() {
			others := p.waitsFor(m, place)
			if others[0].failed {
				p.fail(m, waysError(others[0], place))
				return
			}
			for _, candidate := range append([]*member{m}, others...) {
				if !candidate.isDefault && !candidate.hasTasks {
					p.setCPUs(candidate, candidate.cpus.Difference(p.cpusOf(place)))
					return
				}
			}
			if forced == nil {
				forced, at = m, place
			}
		}
	}
	p.write(forced, []place{at})
}
