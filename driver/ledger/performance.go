package ledger

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
)

// Performance is what the CPUs of a share have while a claim has them, and what they had
// before. A recorded one is never changed.
type Performance struct {
	Asked deviceclasses.PerformanceSettings `json:"asked"`
	cpufreq.Changes
	Uncore  []uncore.Demand      `json:"uncore,omitempty"`  // of the dies of the CPUs
	Applied bool                 `json:"applied,omitempty"` // the changes and demands say what the kernel made of them
	Staying []interrupts.Refusal `json:"staying,omitempty"` // interrupts that the kernel does not move
}

// Equal compares every field. p may be nil.
func (p *Performance) Equal(other *Performance) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Asked.Equal(other.Asked) && p.Changes.Equal(other.Changes) && slices.Equal(p.Uncore, other.Uncore) &&
		p.Applied == other.Applied && slices.Equal(p.Staying, other.Staying)
}

func (p *Performance) validate() error {
	if p == nil {
		return nil
	}
	if err := errors.Join(p.Asked.Validate(), p.Changes.Validate()); err != nil {
		return fmt.Errorf("performance.%w", err)
	}
	for _, demand := range p.Uncore {
		if err := demand.Validate(); err != nil {
			return fmt.Errorf("performance.%w", err)
		}
	}
	return nil
}

// status returns what the claim's status says; nil if the claim changes nothing.
func (p *Performance) status() *deviceclasses.PerformanceStatus {
	if p == nil {
		return nil
	}
	status := &deviceclasses.PerformanceStatus{Asked: p.Asked}
	for _, change := range p.Frequencies {
		frequency := deviceclasses.FrequencyStatus{
			Policies: change.Policies, Driver: change.Driver, Governor: change.Got.Governor, EnergyPreference: change.Got.EnergyPreference,
		}
		if change.Got.MinKHz > 0 {
			frequency.MinFrequency = deviceclasses.FrequencyText(change.Got.MinKHz)
		}
		if change.Got.MaxKHz > 0 {
			frequency.MaxFrequency = deviceclasses.FrequencyText(change.Got.MaxKHz)
		}
		status.Frequencies = append(status.Frequencies, frequency)
	}
	for _, demand := range p.Uncore {
		die := deviceclasses.UncoreStatus{Package: demand.Package, Die: demand.Die}
		if demand.GotKHz > 0 {
			die.MinFrequency = deviceclasses.FrequencyText(demand.GotKHz)
		}
		status.Uncore = append(status.Uncore, die)
	}
	for _, stays := range p.Staying {
		status.Interrupts = append(status.Interrupts, deviceclasses.StayingInterrupt(stays))
	}
	return status
}
