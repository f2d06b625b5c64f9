package deviceclasses

import "fmt"

// Values of NodePerformance.Allow. The default is AllowNone.
const (
	AllowNone  = "none"  // nothing is changed
	AllowClass = "class" // only that of a DeviceClass, which administrators write
	AllowClaim = "claim" // also that of a claim, which users write
)

// NodePerformance says what may be changed about the speed of a node's CPUs.
type NodePerformance struct {
	// Allow says whose PerformanceConfig can change the frequency, the uncore, the idle states
	// and the interrupts of CPUs. Unless it is none, the daemon writes to the host's sysfs and procfs.
	//
	//	allow: class
	Allow string `json:"allow,omitempty"`
	// Default is what CPUs have while no claim changes them: fields of a PerformanceConfig
	// except interrupts and minUncoreFrequency. With reservedCPUs: true, the CPUs that no claim gets have it, too. An
	// empty one gives CPUs back what they had before.
	//
	//	default: {governor: powersave, maxFrequency: base}
	Default *DefaultPerformance `json:"default,omitempty"`
}

// DefaultPerformance is what CPUs have while no claim changes them.
type DefaultPerformance struct {
	PerformanceSettings `json:",inline"`

	ReservedCPUs bool `json:"reservedCPUs,omitempty"` // those that no claim gets have it, too
}

// validate checks the values of the fields.
func (p NodePerformance) validate() error {
	err := checkChoices(choice{"allow", p.Allow, []string{AllowNone, AllowClass, AllowClaim}})
	if err == nil && p.Default != nil {
		err = under("default", p.Default.validate())
	}
	return under("performance", err)
}

func (p DefaultPerformance) validate() error {
	if p.Interrupts != "" {
		return fmt.Errorf("interrupts: %q, only claims can move interrupts", p.Interrupts)
	}
	if p.MinUncoreFrequency != "" {
		return fmt.Errorf("minUncoreFrequency: %q, only claims can set the uncore", p.MinUncoreFrequency)
	}
	return p.PerformanceSettings.Validate()
}
