package cpufreq

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/effect"
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
			if back := (effect.Value[string]{First: limit.Before, Asked: limit.Want}).Back(now); back != "" {
				err = h.limit(cpu, back)
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
	if change.Got, err = h.probe(&now, &change); err != nil {
		return err
	}
	back := change.each(valuesOf(&now), effect.Value[string].Back, effect.Value[int].Back)
	if back.MaxKHz == 0 { // another program has set the highest frequency
		back.MinKHz = min(back.MinKHz, now.MaxKHz)
	} else if back.MinKHz == 0 {
		back.MaxKHz = max(back.MaxKHz, now.MinKHz)
	}
	return h.set(&now, back)
}

// probe returns what the kernel made of the frequencies that were wanted, as it shows them
// now. That differs from what was read back if the daemon died before that, or between the
// writes for the highest and the lowest frequency: the kernel moves a frequency that it does
// not have up or down to one between the two.
func (h *Host) probe(now *numa.FrequencyPolicy, change *Change) (got Values, err error) {
	got = change.Got
	for _, field := range []func(*Values) *int{lowest, highest} {
		current, shown := *now, valuesOf(now)
		apply := func(kHz int) (int, error) {
			var want Values
			*field(&want) = kHz
			if err := h.setRange(&current, current.Governor, want.MinKHz, want.MaxKHz); err != nil {
				return 0, err
			}
			current, err = numa.ReadFrequencyPolicy(h.files, now.ID)
			has := valuesOf(&current)
			return *field(&has), err
		}
		if *field(&got), err = of(change, field).Probe(*field(&shown), apply); err != nil {
			return Values{}, err
		}
	}
	return got, nil
}

// set writes the fields that are wanted and differ. The governor comes first, because it
// decides which energy preferences are possible, and some drivers change the preference
// with it.
func (h *Host) set(now *numa.FrequencyPolicy, want Values) error {
	governor := cmp.Or(want.Governor, now.Governor)
	if governor != now.Governor {
		if err := h.put(now, "scaling_governor", governor); err != nil {
			return err
		}
	}
	if want.EnergyPreference != "" && (governor != now.Governor || want.EnergyPreference != now.EnergyPreference) {
		err := h.put(now, "energy_performance_preference", want.EnergyPreference)
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
	bounds := []struct {
		file         string
		kHz, current int
	}{{"scaling_min_freq", minKHz, now.MinKHz}, {"scaling_max_freq", maxKHz, now.MaxKHz}}
	if maxKHz >= now.MinKHz {
		slices.Reverse(bounds)
	}
	wrote := false
	for _, bound := range bounds {
		if bound.kHz == 0 || bound.kHz == bound.current {
			continue
		}
		if err := h.put(now, bound.file, bound.kHz); err != nil {
			return err
		}
		wrote = true
	}
	if !wrote {
		return nil
	}
	return h.put(now, "scaling_governor", governor)
}

// put writes a text or a number to a file of a policy.
func (h *Host) put(policy *numa.FrequencyPolicy, file string, value any) error {
	if err := h.write(numa.FrequencyPolicyFolder(policy.ID)+"/"+file, fmt.Sprint(value)); err != nil {
		return fmt.Errorf("frequency of cpus %s: write %#v: %w", policy.CPUs, value, err)
	}
	return nil
}
