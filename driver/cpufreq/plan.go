package cpufreq

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// State is what CPUs have now.
type State struct {
	Policies   []numa.FrequencyPolicy // of the CPUs, ascending by id
	Idle       map[int]string         // limit of the resume latency, by CPU; see numa.ReadIdleLimit
	IdleDriver string                 // "" if the node has none
}

// Read reads what Plan needs to know about these CPUs for these settings.
func Read(files fs.FS, cpus cpuset.Set, settings deviceclasses.PerformanceSettings) (state State, err error) {
	if settings.Frequency() {
		if state.Policies, err = numa.ReadFrequencyPolicies(files, cpus); err != nil {
			return State{}, err
		}
	}
	if settings.IdleLatency == nil {
		return state, nil
	}
	if state.IdleDriver, err = numa.ReadIdleDriver(files); err != nil {
		return State{}, err
	}
	state.Idle = make(map[int]string)
	for cpu := range cpus.All() {
		if state.Idle[cpu], err = numa.ReadIdleLimit(files, cpu); err != nil {
			return State{}, err
		}
	}
	return state, nil
}

// Began returns the state with the frequencies and limits with which the kernel began. Of
// the governor and the energy preference, the kernel does not say that: they are those before
// the claimed changes.
func Began(state State, claimed Changes) State {
	state.Policies, state.Idle = slices.Clone(state.Policies), maps.Clone(state.Idle)
	for i := range state.Policies {
		policy := &state.Policies[i]
		policy.MinKHz, policy.MaxKHz = policy.LowestKHz, policy.HighestKHz
		for _, change := range claimed.Frequencies {
			if change.Driver == policy.Driver && change.Policies.Contains(policy.ID) {
				policy.Governor, policy.EnergyPreference = change.Before.Governor, change.Before.EnergyPreference
			}
		}
	}
	for cpu, limit := range state.Idle {
		if limit != "" {
			state.Idle[cpu] = "0" // none; dev_pm_qos_expose_latency_limit in drivers/base/power/qos.c
		}
	}
	return state
}

// Plan decides what changes give these CPUs the settings. It returns an error of one line,
// which names the field, for what the machine does not have, and for frequencies that other
// CPUs share. cores are those of the machine.
func Plan(state State, cores []numa.Core, cpus cpuset.Set, settings deviceclasses.PerformanceSettings) (changes Changes, err error) {
	if settings.Frequency() {
		if err := own(state, cores, cpus); err != nil {
			return Changes{}, fmt.Errorf("%s: %w", settings.First(), err)
		}
		for i := range state.Policies {
			policy := &state.Policies[i]
			want, err := wanted(policy, settings)
			if err != nil {
				return Changes{}, err
			}
			changes.Frequencies = add(changes.Frequencies, policiesOf,
				Change{Policies: cpuset.New(policy.ID), Driver: policy.Driver, Before: valuesOf(policy), Want: want})
		}
	}
	if settings.IdleLatency != nil {
		changes.Idle, err = planIdle(state, cpus, *settings.IdleLatency)
	}
	return changes, err
}

// own refuses CPUs whose frequency is not only theirs: a policy may have several CPUs, and
// the threads of a core have one clock even if each has a policy.
func own(state State, cores []numa.Core, cpus cpuset.Set) error {
	without := cpus
	for i := range state.Policies {
		policy := &state.Policies[i]
		if others := policy.CPUs.Difference(cpus); !others.IsEmpty() {
			return fmt.Errorf("cpus %s change their frequency together, and the request does not have cpus %s", policy.CPUs, others)
		}
		without = without.Difference(policy.CPUs)
	}
	if !without.IsEmpty() {
		return fmt.Errorf("the kernel has no frequency driver for cpus %s", without)
	}
	for i := range cores {
		if others := cores[i].CPUs.Difference(cpus); cores[i].CPUs.Overlaps(cpus) && !others.IsEmpty() {
			return fmt.Errorf("cpus %s are threads of one core, and the request does not have cpus %s: request whole cores", cores[i].CPUs, others)
		}
	}
	return nil
}

// wanted returns what a policy should have.
func wanted(p *numa.FrequencyPolicy, settings deviceclasses.PerformanceSettings) (want Values, err error) {
	want.Governor, want.EnergyPreference = settings.Governor, settings.EnergyPreference
	if err := checkGovernor(p, settings); err != nil {
		return Values{}, err
	}
	if want.MinKHz, err = resolve(p, "minFrequency", settings.MinFrequency); err != nil {
		return Values{}, err
	}
	if want.MaxKHz, err = resolve(p, "maxFrequency", settings.MaxFrequency); err != nil {
		return Values{}, err
	}
	switch { // the lowest frequency is at most the highest one
	case want.MaxKHz == 0 && want.MinKHz > p.MaxKHz:
		want.MaxKHz = want.MinKHz
	case want.MinKHz == 0 && want.MaxKHz != 0 && want.MaxKHz < p.MinKHz:
		want.MinKHz = want.MaxKHz
	case want.MaxKHz != 0 && want.MinKHz > want.MaxKHz:
		return Values{}, fmt.Errorf("minFrequency: %q is %s on cpus %s, allowed are frequencies up to maxFrequency, %s",
			settings.MinFrequency, deviceclasses.FrequencyText(want.MinKHz), p.CPUs, deviceclasses.FrequencyText(want.MaxKHz))
	}
	if active(p) && want.Governor == deviceclasses.GovernorPerformance {
		want.EnergyPreference = deviceclasses.EnergyPerformance // the kernel sets it with the governor
	}
	if want.EnergyPreference != "" && p.EnergyPreference == "" {
		return Values{}, fmt.Errorf("%s: cpus %s have an energy preference now for which the frequency driver %s has no name, so it could not be restored",
			preferenceField(settings), p.CPUs, p.Driver)
	}
	return want, nil
}

// preferenceField names the field that changes the energy preference.
func preferenceField(settings deviceclasses.PerformanceSettings) string {
	if settings.EnergyPreference != "" {
		return "energyPreference"
	}
	return "governor"
}

// active reports whether the frequency driver chooses frequencies itself and has energy
// preferences; Documentation/admin-guide/pm/{intel_pstate,amd-pstate}.rst.
func active(p *numa.FrequencyPolicy) bool {
	return len(p.EnergyPreferences) > 0 && len(p.Governors) == 2
}

// checkGovernor refuses a governor and an energy preference that the driver does not have.
func checkGovernor(p *numa.FrequencyPolicy, settings deviceclasses.PerformanceSettings) error {
	if settings.Governor != "" && !slices.Contains(p.Governors, settings.Governor) {
		return fmt.Errorf("governor: %q, cpus %s with the frequency driver %s have %s", settings.Governor, p.CPUs, p.Driver, strings.Join(p.Governors, ", "))
	}
	preference := settings.EnergyPreference
	switch {
	case preference == "":
		return nil
	case len(p.EnergyPreferences) == 0:
		return fmt.Errorf("energyPreference: %q, cpus %s with the frequency driver %s have none: intel_pstate and amd-pstate have it when they are active", preference, p.CPUs, p.Driver)
	case !slices.Contains(p.EnergyPreferences, preference):
		return fmt.Errorf("energyPreference: %q, cpus %s with the frequency driver %s have %s", preference, p.CPUs, p.Driver, strings.Join(p.EnergyPreferences, ", "))
	case active(p) && cmp.Or(settings.Governor, p.Governor) == deviceclasses.GovernorPerformance && preference != deviceclasses.EnergyPerformance:
		return fmt.Errorf("energyPreference: %q, cpus %s have the governor performance, which allows only performance: set governor, too", preference, p.CPUs)
	}
	return nil
}

// resolve returns a frequency in kHz, 0 for an empty text.
func resolve(p *numa.FrequencyPolicy, field, text string) (kHz int, err error) {
	frequency, err := deviceclasses.ParseFrequency(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	if text == "" {
		return 0, nil
	}
	if frequency.Of == deviceclasses.FrequencyBase && p.BaseKHz == 0 {
		return 0, fmt.Errorf("%s: %q, the machine does not say the base frequency of cpus %s", field, text, p.CPUs)
	}
	if kHz = frequency.On(p.LowestKHz, p.BaseKHz, p.HighestKHz); kHz < p.LowestKHz || kHz > p.HighestKHz {
		return 0, fmt.Errorf("%s: %q is %s, cpus %s have %s to %s", field, text, deviceclasses.FrequencyText(kHz), p.CPUs,
			deviceclasses.FrequencyText(p.LowestKHz), deviceclasses.FrequencyText(p.HighestKHz))
	}
	return kHz, nil
}

var errNoIdleDriver = errors.New("idleLatency: the kernel has no driver of idle states on this node, so it cannot limit them")

// planIdle limits the resume latency of CPUs.
func planIdle(state State, cpus cpuset.Set, microseconds int) (limits []Limit, err error) {
	if state.IdleDriver == "" {
		return nil, errNoIdleDriver
	}
	want := numa.NoIdle
	if microseconds > 0 {
		want = strconv.Itoa(microseconds)
	}
	for cpu := range cpus.All() {
		before := state.Idle[cpu]
		if before == "" {
			return nil, fmt.Errorf("idleLatency: the kernel cannot limit idle states of cpu %d: %s does not exist", cpu, numa.IdleLimitFile(cpu))
		}
		limits = add(limits, cpusOf, Limit{CPUs: cpuset.New(cpu), Before: before, Want: want})
	}
	return limits, nil
}
