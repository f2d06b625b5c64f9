package cpufreq

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Restore gives CPUs back what they had before the changes. It leaves what another program
// has written since, policies that have another driver, and CPUs that are gone. CPUs that
// are offline are an error: they would be online again with what was written.
func (h *Host) Restore(changes Changes) error {
	var errs []error
	for _, change := range changes.Frequencies {
		for policy := range change.Policies.All() {
			errs = append(errs, h.restore(policy, change))
		}
	}
	for _, limit := range changes.Idle {
		for cpu := range limit.CPUs.All() {
			now, err := numa.ReadIdleLimit(h.files, cpu)
			if err == nil && now == limit.Want {
				err = h.limit(cpu, limit.Before)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// restore restores one policy.
func (h *Host) restore(policy int, change Change) error {
	now, err := numa.ReadFrequencyPolicy(h.files, policy)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.Driver != change.Driver {
		return nil
	}
	if err != nil {
		return err
	}
	if change.Got, err = h.probe(&now, change); err != nil {
		return err
	}
	return h.set(&now, ours(valuesOf(&now), change))
}

// probe returns what the kernel made of the frequencies that were wanted, as it shows them
// now. That differs from what was read back if the daemon died before that, or between the
// writes for the highest and the lowest frequency: the kernel moves a frequency that it does
// not have up or down to one between the two. A frequency that is neither known nor what
// becomes of the wanted one is another program's, and stays.
func (h *Host) probe(now *numa.FrequencyPolicy, change Change) (got Values, err error) {
	got = change.Got
	for _, field := range []func(*Values) *int{
		func(v *Values) *int { return &v.MinKHz },
		func(v *Values) *int { return &v.MaxKHz },
	} {
		has := valuesOf(now)
		shown, want := *field(&has), *field(&change.Want)
		if want == 0 || slices.Contains([]int{*field(&change.Before), want, *field(&got)}, shown) {
			continue
		}
		var wanted, back Values
		*field(&wanted), *field(&back) = want, shown
		if err := h.setRange(now, now.Governor, wanted.MinKHz, wanted.MaxKHz); err != nil {
			return Values{}, err
		}
		then, err := numa.ReadFrequencyPolicy(h.files, now.ID)
		if err != nil {
			return Values{}, err
		}
		if has = valuesOf(&then); *field(&has) == shown {
			*field(&got) = shown
		} else if err := h.setRange(&then, then.Governor, back.MinKHz, back.MaxKHz); err != nil {
			return Values{}, err
		}
	}
	return got, nil
}

// ours returns the values to restore: those of the fields that still have what was written.
func ours(now Values, change Change) (restored Values) {
	before, want, got := change.Before, change.Want, change.Got
	if want.Governor != "" && now.Governor == want.Governor {
		restored.Governor = before.Governor
	}
	if want.EnergyPreference != "" && now.EnergyPreference == want.EnergyPreference {
		restored.EnergyPreference = before.EnergyPreference
	}
	if want.MinKHz != 0 && (now.MinKHz == want.MinKHz || now.MinKHz == got.MinKHz) {
		restored.MinKHz = before.MinKHz
	}
	if want.MaxKHz != 0 && (now.MaxKHz == want.MaxKHz || now.MaxKHz == got.MaxKHz) {
		restored.MaxKHz = before.MaxKHz
	}
	if restored.MaxKHz == 0 { // another program has set the highest frequency
		restored.MinKHz = min(restored.MinKHz, now.MaxKHz)
	} else if restored.MinKHz == 0 {
		restored.MaxKHz = max(restored.MaxKHz, now.MinKHz)
	}
	return restored
}

// set writes the fields that are wanted and differ. The governor comes first, because it
// decides which energy preferences are possible, and some drivers change the preference
// with it.
func (h *Host) set(now *numa.FrequencyPolicy, want Values) error {
	folder := numa.FrequencyPolicyFolder(now.ID)
	change := func(file, text string) error {
		if err := h.write(folder+"/"+file, text); err != nil {
			return fmt.Errorf("frequency of cpus %s: write %q: %w", now.CPUs, text, err)
		}
		return nil
	}
	governor := now.Governor
	if want.Governor != "" && want.Governor != governor {
		if err := change("scaling_governor", want.Governor); err != nil {
			return err
		}
		governor = want.Governor
	}
	if want.EnergyPreference != "" && (governor != now.Governor || want.EnergyPreference != now.EnergyPreference) {
		err := change("energy_performance_preference", want.EnergyPreference)
		if errors.Is(err, syscall.EBUSY) && want.Governor == "" && governor == deviceclasses.GovernorPerformance {
			err = nil // another program has set this governor, and with it the preference
		}
		if err != nil {
			return err
		}
	}
	return h.setRange(now, governor, want.MinKHz, want.MaxKHz)
}

// setRange writes the lowest and the highest frequency; 0 is for one that stays. At each
// moment the lowest one is at most the highest one.
//
// The kernel takes both as requests, and a worker of it changes the policy some time later:
// cpufreq_notifier_min in drivers/cpufreq/cpufreq.c. Until then, reading shows what was there
// before. Writing the governor makes it change the policy at once, so the governor that the
// policy has is written, too.
func (h *Host) setRange(now *numa.FrequencyPolicy, governor string, minKHz, maxKHz int) error {
	wrote := false
	write := func(file string, kHz, current int) error {
		if kHz == 0 || kHz == current {
			return nil
		}
		wrote = true
		if err := h.write(numa.FrequencyPolicyFolder(now.ID)+"/"+file, strconv.Itoa(kHz)); err != nil {
			return fmt.Errorf("frequency of cpus %s: write %d: %w", now.CPUs, kHz, err)
		}
		return nil
	}
	lowest := func() error { return write("scaling_min_freq", minKHz, now.MinKHz) }
	highest := func() error { return write("scaling_max_freq", maxKHz, now.MaxKHz) }
	first, second := lowest, highest
	if maxKHz >= now.MinKHz {
		first, second = highest, lowest
	}
	if err := first(); err != nil {
		return err
	}
	if err := second(); err != nil || !wrote {
		return err
	}
	if err := h.write(numa.FrequencyPolicyFolder(now.ID)+"/scaling_governor", governor); err != nil {
		return fmt.Errorf("frequency of cpus %s: write %q: %w", now.CPUs, governor, err)
	}
	return nil
}
