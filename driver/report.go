package driver

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Outcome is what recovery did with a grant, or with CPUs that are in no grant.
type Outcome string

// The outcomes. With the first three the grant keeps its CPUs.
const (
	Kept     Outcome = "kept"     // as it was on record
	Restored Outcome = "restored" // from its CDI spec; the checkpoint did not have it
	Waiting  Outcome = "waiting"  // no claim needs it, but its containers may run, a live partition holds its CPUs, or a function does not have its previous driver back
	Released Outcome = "released" // no claim needs it, or the machine has lost some of it since the last boot
	Refused  Outcome = "refused"  // an older grant has its CPUs or PCI functions
	Blocked  Outcome = "blocked"  // a live partition holds CPUs that are in no grant; no claim gets them until the partition is gone
)

// Finding is one line of a Report.
type Finding struct {
	Outcome Outcome
	Grant   ledger.Grant // empty if Blocked
	Held    Held         // the partition, if the grant is Waiting for one or CPUs are Blocked; else empty
	Why     string       // one clause; empty if Kept
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

// Report says what became of grants, and then which CPUs are blocked. The report of
// Recover has every grant, the oldest first.
type Report []Finding

// Held is a set of CPUs that a live cgroup partition holds.
type Held struct {
	Cgroup  string // path below the cgroup root
	CPUs    cpuset.Set
	Invalid string // the kernel's reason if the partition is invalid; the partition holds the CPUs all the same
}

// String describes the partition in one clause.
func (h Held) String() string {
	if h.Invalid != "" {
		return fmt.Sprintf("cgroup %s holds cpus %s, invalid: %s", h.Cgroup, h.CPUs, h.Invalid)
	}
	return fmt.Sprintf("cgroup %s holds cpus %s", h.Cgroup, h.CPUs)
}
