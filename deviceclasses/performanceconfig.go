package deviceclasses

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PerformanceConfigKind is the kind of a PerformanceConfig.
const PerformanceConfigKind = "PerformanceConfig"

// Values of PerformanceSettings.EnergyPreference. Without a value, CPUs keep theirs. The
// kernel also takes "default", for a number of the firmware, but never shows it, so nothing
// could tell whether the CPUs still have it.
const (
	EnergyPerformance        = "performance"         // speed only
	EnergyBalancePerformance = "balance_performance" // speed, if the two conflict
	EnergyBalancePower       = "balance_power"       // energy, if the two conflict
	EnergyPower              = "power"               // energy only
)

// Values of PerformanceSettings.Interrupts. Without a value, interrupts stay where they are.
const (
	InterruptsAway = "away" // the CPUs handle none that can be moved
	InterruptsOwn  = "own"  // the CPUs handle those of the claim's PCI functions, and no others that can be moved
)

// GovernorPerformance is the governor that always asks for the highest frequency.
const GovernorPerformance = "performance"

// PerformanceConfig says how fast and how undisturbed the CPUs of a zone are while a claim
// has them. It is the opaque configuration of a request, in the claim or in its class. When
// the claim ends, the CPUs get back what they had before.
type PerformanceConfig struct {
	metav1.TypeMeta     `json:",inline"`
	PerformanceSettings `json:",inline"`

	// Locked are names of fields that claims must not change, not even from their default.
	// Only a DeviceClass can lock fields.
	//
	//	locked: [governor, idleLatency]
	Locked []string `json:"locked,omitempty"`
}

// PerformanceSettings are how fast and how undisturbed CPUs are. What they do not name
// stays as it is.
type PerformanceSettings struct {
	// MinFrequency is the lowest frequency of the CPUs: a number with a unit, or min, base
	// or max, which is what the CPU has, or a multiple of base.
	//
	//	minFrequency: 1.5x base
	MinFrequency string `json:"minFrequency,omitempty"`
	// MaxFrequency is the highest frequency of the CPUs, in the same form. The firmware may
	// limit the CPUs to less.
	//
	//	maxFrequency: 2.4GHz
	MaxFrequency string `json:"maxFrequency,omitempty"`
	// Governor chooses frequencies between the two. Which governors there are depends on
	// the frequency driver of the node.
	//
	//	governor: performance
	Governor string `json:"governor,omitempty"`
	// EnergyPreference is how the processor weighs speed against energy. Only intel_pstate
	// and amd-pstate have it, when they are active. With the governor performance, only the
	// preference performance is possible.
	//
	//	energyPreference: balance_power
	EnergyPreference string `json:"energyPreference,omitempty"`
	// MinUncoreFrequency is the lowest frequency of the uncore of each die on which the request
	// has CPUs: of its mesh, level-3 caches and memory controllers. It is a number with a unit,
	// or min or max of the die. All CPUs of a die share it, so a die has the highest frequency
	// that its claims ask for, and never less than before. Only Intel's uncore driver has it.
	//
	//	minUncoreFrequency: 2GHz
	MinUncoreFrequency string `json:"minUncoreFrequency,omitempty"`
	// IdleLatency is the longest time in microseconds that an idle CPU may need to wake up.
	// With 0, the CPUs are never idle.
	//
	//	idleLatency: 20
	IdleLatency *int `json:"idleLatency,omitempty"`
	// Interrupts says which interrupts of devices the CPUs handle. The kernel does not move
	// some interrupts, such as those of NVMe queues. The claim's status lists them.
	//
	//	interrupts: away
	Interrupts string `json:"interrupts,omitempty"`
}

// MaxIdleLatency is the largest limit that the kernel knows:
// PM_QOS_RESUME_LATENCY_NO_CONSTRAINT in include/linux/pm_qos.h, minus 1.
const MaxIdleLatency = 1<<31 - 2

// maxGovernor is the largest length of a governor's name, CPUFREQ_NAME_LEN minus 1.
const maxGovernor = 15

// IsZero reports whether the settings leave everything as it is.
func (s PerformanceSettings) IsZero() bool { return s == PerformanceSettings{} }

// Frequency reports whether the settings change how CPUs choose their frequency. The uncore
// is no part of that.
func (s PerformanceSettings) Frequency() bool {
	return s.MinFrequency != "" || s.MaxFrequency != "" || s.Governor != "" || s.EnergyPreference != ""
}

// Equal compares the values of the fields.
func (s PerformanceSettings) Equal(other PerformanceSettings) bool {
	return slices.Equal(s.settings(), other.settings())
}

// DecodeOver reads one PerformanceConfig, in JSON. Fields that raw does not name keep the
// values of c. Anything unknown is an error of one line, which names the field and what is
// allowed.
func (c PerformanceConfig) DecodeOver(raw []byte) (PerformanceConfig, error) {
	c.Locked = slices.Clone(c.Locked) // decoding writes into a list that is there
	if c.IdleLatency != nil {
		c.IdleLatency = new(*c.IdleLatency) // and into a number
	}
	return decodeValid(PerformanceConfigKind, raw, &c, &c.TypeMeta)
}

// Validate checks the values of the fields. A field may be empty.
func (c PerformanceConfig) Validate() error {
	return cmp.Or(c.PerformanceSettings.Validate(), checkLocked(c.Locked, c.settings()))
}

// Validate checks what can be known without a machine.
func (s PerformanceSettings) Validate() error {
	lowest, err := ParseFrequency(s.MinFrequency)
	if err != nil {
		return fmt.Errorf("minFrequency: %w", err)
	}
	highest, err := ParseFrequency(s.MaxFrequency)
	if err != nil {
		return fmt.Errorf("maxFrequency: %w", err)
	}
	if s.MinFrequency != "" && s.MaxFrequency != "" && lowest.exceeds(highest) {
		return fmt.Errorf("minFrequency: %q, allowed are frequencies up to maxFrequency %s", s.MinFrequency, s.MaxFrequency)
	}
	if len(s.Governor) > maxGovernor || strings.Trim(s.Governor, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return fmt.Errorf("governor: %q, want the name of a governor such as performance, powersave or schedutil", s.Governor)
	}
	if err := checkChoices(s.choices()...); err != nil {
		return err
	}
	if s.Governor == GovernorPerformance && s.EnergyPreference != "" && s.EnergyPreference != EnergyPerformance {
		return fmt.Errorf("energyPreference: %q, allowed with the governor performance is %s", s.EnergyPreference, EnergyPerformance)
	}
	if _, err := ParseUncoreFrequency(s.MinUncoreFrequency); err != nil {
		return fmt.Errorf("minUncoreFrequency: %w", err)
	}
	if s.IdleLatency != nil {
		return checkRange("idleLatency", *s.IdleLatency, 0, MaxIdleLatency)
	}
	return nil
}

// choices returns the fields that have one of some values.
func (s PerformanceSettings) choices() []choice {
	return []choice{
		{"energyPreference", s.EnergyPreference, []string{EnergyPerformance, EnergyBalancePerformance, EnergyBalancePower, EnergyPower}},
		{"interrupts", s.Interrupts, []string{InterruptsAway, InterruptsOwn}},
	}
}

// settings returns the fields that a class can lock.
func (s PerformanceSettings) settings() []setting {
	latency := ""
	if s.IdleLatency != nil {
		latency = strconv.Itoa(*s.IdleLatency)
	}
	return []setting{
		{"minFrequency", s.MinFrequency},
		{"maxFrequency", s.MaxFrequency},
		{"governor", s.Governor},
		{"energyPreference", s.EnergyPreference},
		{"minUncoreFrequency", s.MinUncoreFrequency},
		{"idleLatency", latency},
		{"interrupts", s.Interrupts},
	}
}

// First returns the name of the first field that is set; "" if none is.
func (s PerformanceSettings) First() string {
	for _, one := range s.settings() {
		if one.value != "" {
			return one.name
		}
	}
	return ""
}
