package pin

import (
	"errors"
	"fmt"
	"io/fs"
)

// Live is the state of one recorded cgroup. In pod scope, the pod and each of its
// containers have a Live of their own.
type Live struct {
	Cgroup     string  // its path below the mount
	Claims     []Claim // what each claim gives the cgroup; ascending by UID
	Want       Pinning // what it should have now
	Downgraded bool    // no partition: another cgroup uses the same CPUs of a claim, or the pod has come later to one in [ScopePod]
	Fault      string  // why the kernel does not grant Want; empty if it does
}

// Inspect compares the records with what the kernel grants, and changes nothing. It
// leaves out cgroups that are gone or have no process, and records that the error
// names. A missing directory has no records. While a hook works, Inspect may report a
// fault for a moment. After a reboot, it may report a record of the previous boot,
// until the next [Pin] or a [Keeper] removes it.
func Inspect(cgroups, records fs.FS) ([]Live, error) {
	list, faults, err := loadRecords(records)
	if err != nil {
		return nil, err
	}
	all := inspect(cgroups, list, &faults)
	return all, errors.Join(faults...)
}

// inspect adds records that it cannot compare to faults.
func inspect(cgroups fs.FS, list []record, faults *[]error) (all []Live) {
	var live []record
	for _, r := range list {
		populated, err := isPopulated(cgroups, r.Cgroup)
		if err != nil {
			*faults = append(*faults, fmt.Errorf("inspect %s: %w", r.Cgroup, err))
		}
		if populated {
			live = append(live, r)
		}
	}
	for _, d := range decide(live) {
		entry := Live{Cgroup: d.Cgroup, Claims: d.Claims, Want: d.want, Downgraded: d.downgraded}
		switch err := verify(cgroups, d.Cgroup, d.want); {
		case hasEnded(cgroups, d.Cgroup, err):
			continue
		case err != nil:
			entry.Fault = err.Error()
		}
		all = append(all, entry)
	}
	return all
}
