package driver

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Outcome is what recovery did about a grant, or about CPUs of no grant.
type Outcome string

// The outcomes. With the first three the claim keeps its CPUs.
const (
	Kept     Outcome = "kept"     // as it was on record
	Restored Outcome = "restored" // the checkpoint had lost it
	Waiting  Outcome = "waiting"  // nobody needs it, but a live partition holds its CPUs, or a function has not got its driver back
	Released Outcome = "released" // nobody needs it
	Refused  Outcome = "refused"  // an older grant has its CPUs or PCI functions
	Blocked  Outcome = "blocked"  // a live partition holds CPUs of no grant: nobody gets them until it is gone
)

// Finding is one line of a Report.
type Finding struct {
	Outcome Outcome
	Grant   Grant  // empty if Blocked
	Held    Held   // of a grant that is Waiting for a partition, or Blocked; else empty
	Why     string // one clause; empty if Kept
}

// String is the finding as logs and events show it.
func (f Finding) String() string {
	if f.Outcome == Blocked {
		return fmt.Sprintf("%s cpus %s: %s", f.Outcome, f.Held.CPUs, f.Why)
	}
	if f.Why == "" {
		return fmt.Sprintf("%s %s", f.Outcome, f.Grant)
	}
	return fmt.Sprintf("%s %s: %s", f.Outcome, f.Grant, f.Why)
}

// Report is what became of every grant, the oldest first, and after them the
// CPUs that are blocked.
type Report []Finding

// Held is CPUs that a live cgroup partition holds.
type Held struct {
	Cgroup  string // below the cgroup root
	CPUs    cpuset.Set
	Invalid string // why the kernel does not honour it, as it says; it holds the CPUs all the same
}

// String is a clause.
func (h Held) String() string {
	if h.Invalid != "" {
		return fmt.Sprintf("cgroup %s holds cpus %s, invalid: %s", h.Cgroup, h.CPUs, h.Invalid)
	}
	return fmt.Sprintf("cgroup %s holds cpus %s", h.Cgroup, h.CPUs)
}
