package interrupts

import (
	"cmp"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// First is which CPUs handled interrupts before claims had any say. Claims may begin and end
// in any order, so this is a state of the node, not of a claim. The zero value is that of a
// node without such claims.
type First struct {
	Default    cpuset.Set `json:"default,omitzero"`     // of interrupts that are requested from then on
	Affinities []Affinity `json:"affinities,omitempty"` // of those in use, ascending by their first number
}

// Affinity is the CPUs of some interrupts.
type Affinity struct {
	CPUs       cpuset.Set `json:"cpus"`
	Interrupts []int      `json:"interrupts"` // numbers, ascending
}

// IsZero reports whether no interrupt was changed.
func (f First) IsZero() bool { return f.Default.IsEmpty() && len(f.Affinities) == 0 }

// of returns the CPUs of an interrupt; found is false if nothing is known of it.
func (f First) of(number int) (cpus cpuset.Set, found bool) {
	for i := range f.Affinities {
		if _, found := slices.BinarySearch(f.Affinities[i].Interrupts, number); found {
			return f.Affinities[i].CPUs, true
		}
	}
	return cpuset.Set{}, false
}

// add adds an interrupt. Numbers are added in ascending order.
func (f *First) add(number int, cpus cpuset.Set) {
	i := slices.IndexFunc(f.Affinities, func(a Affinity) bool { return a.CPUs == cpus })
	if i < 0 {
		i, f.Affinities = len(f.Affinities), append(f.Affinities, Affinity{CPUs: cpus})
	}
	f.Affinities[i].Interrupts = append(f.Affinities[i].Interrupts, number)
}

// Demand is what one claim asks for.
type Demand struct {
	CPUs   cpuset.Set // handle no interrupts but Own
	Handle cpuset.Set // those of CPUs that handle Own
	Own    []int      // numbers of interrupts
}

// Write is a change of the CPUs of one interrupt, or of the default.
type Write struct {
	Line   numa.Interrupt // as it is; only with a name. The default has only ofDefault and CPUs
	Should cpuset.Set
}

// ofDefault is in place of the number of an interrupt.
const ofDefault = -1

// CPUs are those of a machine.
type CPUs struct {
	Possible cpuset.Set // every CPU that it can have
	Online   cpuset.Set // those that can handle interrupts now
}

// Plan decides which CPUs should handle interrupts: all claims on record have known, and
// demands is what remains of it. So a claim that ends is known, but demands nothing. What
// another program has written since counts as what was there first.
//
// The next First has to be on record before the writes, and may be forgotten after them if
// there are no demands.
func Plan(state numa.Interrupts, machine CPUs, first First, known, demands []Demand) (next First, writes []Write) {
	if first.IsZero() && len(demands) == 0 {
		return First{}, nil
	}
	was, quiet := clearOf(known), clearOf(demands)
	isNew := first.Default.IsEmpty()
	next.Default = first.Default
	if isNew || !machine.made(state.Default, first.Default, was) {
		next.Default = state.Default
	}
	if should := machine.away(next.Default, quiet); should != state.Default {
		writes = append(writes, Write{Line: numa.Interrupt{Number: ofDefault, CPUs: state.Default}, Should: should})
	}
	for _, line := range state.Lines {
		before, found := first.of(line.Number)
		switch {
		case found && machine.ours(line, before, was, known):
		case !isNew && machine.ours(line, first.Default, was, known):
			before = next.Default // it began after a claim had changed the default, maybe with an old number
		default:
			before = line.CPUs
		}
		next.add(line.Number, before)
		should := machine.away(before, quiet)
		for _, demand := range demands {
			if slices.Contains(demand.Own, line.Number) && !demand.Handle.IsEmpty() {
				should = demand.Handle
			}
		}
		if should != line.CPUs {
			writes = append(writes, Write{Line: line, Should: should})
		}
	}
	slices.SortFunc(next.Affinities, func(a, b Affinity) int { return cmp.Compare(a.Interrupts[0], b.Interrupts[0]) })
	return next, writes
}

// clearOf returns the CPUs of all demands.
func clearOf(demands []Demand) (cpus cpuset.Set) {
	for i := range demands {
		cpus = cpus.Union(demands[i].CPUs)
	}
	return cpus
}

// away returns CPUs without those to keep clear. If none of the others is online, any other CPU
// of the machine will do; if there is none, the CPUs stay.
func (m CPUs) away(cpus, quiet cpuset.Set) cpuset.Set {
	if left := cpus.Difference(quiet); left == cpus || left.Overlaps(m.Online) {
		return left
	}
	if left := m.Possible.Difference(quiet); left.Overlaps(m.Online) {
		return left
	}
	return cpus
}

// made reports whether away may have made these CPUs from those that were there first, with
// all or some of the CPUs to keep clear: a crash may have kept it from the last change of
// those.
func (m CPUs) made(cpus, first, quiet cpuset.Set) bool {
	without := func(from cpuset.Set) bool {
		return cpus.IsSubsetOf(from) && from.Difference(cpus).IsSubsetOf(quiet)
	}
	return without(first) || first.Overlaps(quiet) && !first.Difference(quiet).Overlaps(m.Online) && without(m.Possible)
}

// ours reports whether an interrupt has what was there first, or what Plan made of it.
func (m CPUs) ours(line numa.Interrupt, first, quiet cpuset.Set, known []Demand) bool {
	return m.made(line.CPUs, first, quiet) ||
		slices.ContainsFunc(known, func(d Demand) bool { return d.Handle == line.CPUs && slices.Contains(d.Own, line.Number) })
}
