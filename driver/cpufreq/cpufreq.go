// Package cpufreq changes the frequency and the idle states of CPUs, and gives them back
// what they had. It uses the files that Documentation/admin-guide/pm/cpufreq.rst and
// Documentation/ABI/testing/sysfs-devices-power describe. Plan is pure; the methods of a
// [Host] write. It decides nothing about claims.
package cpufreq

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/driver/effect"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Values are what a frequency policy has, or should have. A field that is empty says
// nothing.
type Values struct {
	Governor         string `json:"governor,omitempty"`
	EnergyPreference string `json:"energyPreference,omitempty"`
	MinKHz           int    `json:"minKHz,omitempty"`
	MaxKHz           int    `json:"maxKHz,omitempty"`
}

// Change is what some frequency policies had and should have.
type Change struct {
	Policies cpuset.Set `json:"policies"` // N of each policy<N>
	Driver   string     `json:"driver"`   // frequency driver. Values of one driver mean nothing to another
	Before   Values     `json:"before"`   // when the change was planned
	Want     Values     `json:"want"`
	Got      Values     `json:"got,omitzero"` // what the kernel made of Want; zero until it is known
}

// Limit is the limit that the resume latency of some CPUs had and should have, as
// [numa.ReadIdleLimit] returns it.
type Limit struct {
	CPUs   cpuset.Set `json:"cpus"`
	Before string     `json:"before"`
	Want   string     `json:"want"`
}

// Changes are what CPUs had and should have. The zero value changes nothing.
type Changes struct {
	Frequencies []Change `json:"frequencies,omitempty"` // no policy is in two of them
	Idle        []Limit  `json:"idle,omitempty"`        // no CPU is in two of them
}

// IsZero reports whether there is nothing to change.
func (c Changes) IsZero() bool { return len(c.Frequencies) == 0 && len(c.Idle) == 0 }

// Equal compares every field.
func (c Changes) Equal(other Changes) bool {
	return slices.Equal(c.Frequencies, other.Frequencies) && slices.Equal(c.Idle, other.Idle)
}

// Validate refuses what Plan does not return.
func (c Changes) Validate() error {
	for _, change := range c.Frequencies {
		for _, values := range []Values{change.Before, change.Want, change.Got} {
			if values.MinKHz < 0 || values.MaxKHz < 0 || values.MaxKHz != 0 && values.MinKHz > values.MaxKHz {
				return fmt.Errorf("frequencies: %d to %d kHz of policies %s", values.MinKHz, values.MaxKHz, change.Policies)
			}
		}
	}
	return nil
}

func valuesOf(p *numa.FrequencyPolicy) Values {
	return Values{Governor: p.Governor, EnergyPreference: p.EnergyPreference, MinKHz: p.MinKHz, MaxKHz: p.MaxKHz}
}

func governor(v *Values) *string   { return &v.Governor }
func preference(v *Values) *string { return &v.EnergyPreference }
func lowest(v *Values) *int        { return &v.MinKHz }
func highest(v *Values) *int       { return &v.MaxKHz }

// of returns one of the values of a change.
func of[T comparable](change *Change, field func(*Values) *T) effect.Value[T] {
	return effect.Value[T]{First: *field(&change.Before), Asked: *field(&change.Want), Got: *field(&change.Got)}
}

// each decides of each value of a change what it is, if a policy shows these.
func (c *Change) each(shown Values, text func(effect.Value[string], string) string, number func(effect.Value[int], int) int) Values {
	return Values{
		Governor:         text(of(c, governor), shown.Governor),
		EnergyPreference: text(of(c, preference), shown.EnergyPreference),
		MinKHz:           number(of(c, lowest), shown.MinKHz),
		MaxKHz:           number(of(c, highest), shown.MaxKHz),
	}
}

// Host is a machine whose CPUs can be changed. Its methods can be called again after an
// error or a crash.
type Host struct {
	files fs.FS
	write func(name, text string) error
}

// New returns a machine with these files, which include sys. write does what write(2) to
// one of the files does.
func New(files fs.FS, write func(name, text string) error) *Host { return &Host{files, write} }

// Files are those of the machine.
func (h *Host) Files() fs.FS { return h.files }

// Apply writes what is wanted, and returns the changes with what the kernel made of that:
// drivers limit frequencies. CPUs that are offline are left out until they are online.
func (h *Host) Apply(changes Changes) (applied Changes, err error) {
	applied.Idle = changes.Idle
	for _, change := range changes.Frequencies {
		for policy := range change.Policies.All() {
			got, err := h.apply(policy, change)
			if err != nil {
				return Changes{}, err
			}
			done := change
			done.Policies, done.Got = cpuset.New(policy), got
			applied.Frequencies = add(applied.Frequencies, policiesOf, done)
		}
	}
	for _, limit := range changes.Idle {
		for cpu := range limit.CPUs.All() {
			if err := h.limit(cpu, limit.Want); err != nil {
				return Changes{}, err
			}
		}
	}
	return applied, nil
}

// apply changes one policy, and returns what it then has of what is wanted.
func (h *Host) apply(policy int, change Change) (got Values, err error) {
	now, err := numa.ReadFrequencyPolicy(h.files, policy)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, numa.ErrOffline) {
		return change.Got, nil
	}
	if err != nil {
		return Values{}, err
	}
	if now.Driver != change.Driver {
		return Values{}, fmt.Errorf("frequency of cpus %s: the driver is now %s, not %s", now.CPUs, now.Driver, change.Driver)
	}
	if err := h.set(&now, change.Want); err != nil {
		return Values{}, err
	}
	if now, err = numa.ReadFrequencyPolicy(h.files, policy); err != nil {
		return Values{}, err
	}
	got = change.each(valuesOf(&now), effect.Value[string].Made, effect.Value[int].Made)
	if got.Governor != change.Want.Governor || got.EnergyPreference != change.Want.EnergyPreference {
		return Values{}, fmt.Errorf("frequency of cpus %s: the kernel has governor %q and energy preference %q after %q and %q were written",
			now.CPUs, got.Governor, got.EnergyPreference, change.Want.Governor, change.Want.EnergyPreference)
	}
	return got, nil
}

// limit limits the resume latency of a CPU.
func (h *Host) limit(cpu int, want string) error {
	now, err := numa.ReadIdleLimit(h.files, cpu)
	if err != nil || now == want || now == "" {
		return err
	}
	if err := h.write(numa.IdleLimitFile(cpu), want); err != nil {
		return fmt.Errorf("idle states of cpu %d: %w", cpu, err)
	}
	now, err = numa.ReadIdleLimit(h.files, cpu)
	if err == nil && now != want {
		err = fmt.Errorf("idle states of cpu %d: the kernel has the limit %q after %q was written", cpu, now, want)
	}
	return err
}
