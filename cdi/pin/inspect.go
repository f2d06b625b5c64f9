package pin

import (
	"errors"
	"fmt"
	"io/fs"
)

// Live is what one recorded cgroup has now. In pod scope a container with
// memory nodes of a claim is one of its own, without CPUs, beside its pod's.
type Live struct {
	Cgroup     string     // the target, below the mount
	Claims     []ClaimRef // ascending by UID
	Want       Pinning    // what it should have now
	Downgraded bool       // its claim has another user elsewhere: no partition until that is gone
	Fault      string     // why the kernel does not honour Want; empty if it does
}

// Inspect compares what was recorded with what the kernel does, and changes
// nothing. Cgroups that are gone or have no process are left out, and so are
// records that the error names; a folder of records that is missing has none. A
// hook at work is seen as a fault for a moment. After a reboot a record of the
// boot before may be seen until the next pin or a [Keeper] drops it.
func Inspect(cgroups, records fs.FS) ([]Live, error) {
	list, faults, err := loadRecords(records)
	if err != nil {
		return nil, err
	}
	var live []record
	for _, r := range list {
		populated, err := isPopulated(cgroups, r.Cgroup)
		if err != nil {
			faults = append(faults, fmt.Errorf("inspect %s: %w", r.Cgroup, err))
		}
		if populated {
			live = append(live, r)
		}
	}
	var all []Live
	for _, d := range decide(live) {
		entry := Live{Cgroup: d.Cgroup, Claims: d.refs(), Want: d.want, Downgraded: d.downgraded}
		switch err := verify(cgroups, d.Cgroup, d.want); {
		case hasEnded(cgroups, d.Cgroup, err):
			continue
		case err != nil:
			entry.Fault = err.Error()
		}
		all = append(all, entry)
	}
	return all, errors.Join(faults...)
}
