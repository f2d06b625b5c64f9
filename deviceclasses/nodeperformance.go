package deviceclasses

// Values of NodePerformance.Allow. The default is AllowNone.
const (
	AllowNone  = "none"  // nothing is changed
	AllowClass = "class" // only that of a DeviceClass, which administrators write
	AllowClaim = "claim" // also that of a claim, which users write
)

// NodePerformance says what may be changed about the speed of a node's CPUs.
type NodePerformance struct {
	// Allow says whose PerformanceConfig can change the frequency, the idle states and the
	// interrupts of CPUs. Unless it is none, the daemon writes to the host's sysfs and procfs.
	//
	//	allow: class
	Allow string `json:"allow,omitempty"`
}

// validate checks the values of the fields.
func (p NodePerformance) validate() error {
	return under("performance", checkChoices(choice{"allow", p.Allow, []string{AllowNone, AllowClass, AllowClaim}}))
}
