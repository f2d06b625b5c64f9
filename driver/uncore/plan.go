package uncore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Write is a lowest frequency to write.
type Write struct {
	ID
	KHz int
}

// stepKHz is what frequencies of the uncore are multiples of. The kernel rounds others down:
// UNCORE_FREQ_KHZ_MULTIPLIER in drivers/platform/x86/intel/uncore-frequency.
const stepKHz = 100_000

var errNoDriver = errors.New("the node has no uncore driver: sys/devices/system/cpu/intel_uncore_frequency has no dies")

// Resolve decides how fast the dies of some CPUs have to be at least: a frequency as
// [deviceclasses.ParseUncoreFrequency] reads it, in the next multiple of 100 MHz. cores are
// those of the machine. A frequency outside the range of a die is an error of one line, and so
// are CPUs without a die.
func Resolve(dies []numa.UncoreDie, cores []numa.Core, cpus cpuset.Set, text string) (demands []Demand, err error) {
	if len(dies) == 0 {
		return nil, errNoDriver
	}
	frequency, err := deviceclasses.ParseUncoreFrequency(text)
	if err != nil {
		return nil, err
	}
	for i := range cores {
		if !cores[i].CPUs.Overlaps(cpus) {
			continue
		}
		die, found := dieOf(dies, &cores[i])
		if !found {
			return nil, fmt.Errorf("the uncore driver of the kernel has no die for cpus %s", cores[i].CPUs.Intersection(cpus))
		}
		want := frequency.On(die.LowestKHz, 0, die.HighestKHz)
		if want < die.LowestKHz || want > die.HighestKHz {
			return nil, fmt.Errorf("%q is %s, %s has %s to %s", text, deviceclasses.FrequencyText(want), idOf(die),
				deviceclasses.FrequencyText(die.LowestKHz), deviceclasses.FrequencyText(die.HighestKHz))
		}
		demand := Demand{ID: idOf(die), WantKHz: (want + stepKHz - 1) / stepKHz * stepKHz}
		if !slices.Contains(demands, demand) {
			demands = append(demands, demand)
		}
	}
	slices.SortFunc(demands, func(a, b Demand) int { return compare(a.ID, b.ID) })
	return demands, nil
}

// dieOf returns the die of a core. If only die 0 of its package can be set, that is the whole
// package.
func dieOf(dies []numa.UncoreDie, core *numa.Core) (die numa.UncoreDie, found bool) {
	if core.Socket == nil {
		return numa.UncoreDie{}, false
	}
	var ofPackage []numa.UncoreDie
	for _, die := range dies {
		if die.Package == *core.Socket {
			ofPackage = append(ofPackage, die)
		}
	}
	if len(ofPackage) == 1 && ofPackage[0].Die == 0 {
		return ofPackage[0], true
	}
	i := slices.IndexFunc(ofPackage, func(die numa.UncoreDie) bool { return core.Die != nil && die.Die == *core.Die })
	if i < 0 {
		return numa.UncoreDie{}, false
	}
	return ofPackage[i], true
}

func compare(a, b ID) int {
	return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Die, b.Die))
}

// Plan decides the lowest frequency of each die: the highest one that a claim asks for, but
// not above the highest one that is set, and not below what was there first, because others
// share the die. Without a demand it is what was there first. What another program has written
// since counts as what was there first. A die that is missing, because its CPUs are offline,
// stays as it is on record.
//
// The dies that it returns as held have to be on record before the writes. When these are
// done, [Settled] returns what to record next.
func Plan(dies []numa.UncoreDie, held []Held, demands []Demand) (next []Held, writes []Write) {
	for _, one := range held {
		if minimumOf(dies, one.ID) == 0 {
			next = append(next, one)
		}
	}
	for _, die := range dies {
		id := idOf(die)
		var before Held
		if i := slices.IndexFunc(held, func(one Held) bool { return one.ID == id }); i >= 0 {
			before = held[i]
		}
		want := highest(demands, id)
		if before == (Held{}) && want == 0 {
			continue
		}
		planned := Held{ID: id, FirstKHz: cmp.Or(before.value().Back(die.MinKHz), die.MinKHz), WasKHz: die.MinKHz}
		planned.WantKHz = max(planned.FirstKHz, min(want, die.MaxKHz))
		switch {
		case planned.WantKHz == die.MinKHz:
			planned.WasKHz, planned.GotKHz = 0, die.MinKHz
		case planned.WantKHz == before.WantKHz && die.MinKHz == before.GotKHz:
			planned = before // the kernel makes this of it
		default:
			writes = append(writes, Write{id, planned.WantKHz})
		}
		next = append(next, planned)
	}
	slices.SortFunc(next, func(a, b Held) int { return compare(a.ID, b.ID) })
	return next, writes
}

// Began returns dies that claims demand as held, for a boot in which it is lost what they
// had first: that is the lowest frequency with which the kernel began.
func Began(dies []numa.UncoreDie, demands []Demand) (held []Held) {
	for _, die := range dies {
		if highest(demands, idOf(die)) > 0 {
			held = append(held, Held{ID: idOf(die), FirstKHz: die.LowestKHz, WantKHz: die.MinKHz, GotKHz: die.MinKHz})
		}
	}
	return held
}

// highest returns the highest demand of a die; 0 if there is none.
func highest(demands []Demand, id ID) (kHz int) {
	for _, demand := range demands {
		if demand.ID == id {
			kHz = max(kHz, demand.WantKHz)
		}
	}
	return kHz
}

// Settled returns what is to be on record when the writes of a Plan are done: what the kernel
// made of them, and no die without a demand, unless it is missing and still has to be given
// back what it had.
func Settled(dies []numa.UncoreDie, held []Held, demands []Demand) (next []Held) {
	for _, one := range held {
		shown := minimumOf(dies, one.ID)
		if shown != 0 {
			one.WasKHz, one.GotKHz = 0, shown
		}
		if shown == 0 || highest(demands, one.ID) > 0 {
			next = append(next, one)
		}
	}
	return next
}

// Got returns the demands of a claim with the lowest frequencies that the dies have. A die
// that is missing is an error.
func Got(dies []numa.UncoreDie, demands []Demand) ([]Demand, error) {
	got := slices.Clone(demands)
	for i := range got {
		if got[i].GotKHz = minimumOf(dies, got[i].ID); got[i].GotKHz == 0 {
			return nil, fmt.Errorf("the uncore driver of the kernel has no %s any more", got[i].ID)
		}
	}
	return got, nil
}
