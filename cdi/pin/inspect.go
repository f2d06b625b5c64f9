package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
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
// leaves out cgroups that are gone or have no process, and records that cannot be read. The
// error has these, and cgroups that do not say whether they have a process. A missing directory has no records. While a hook works, Inspect may report a
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

// inspect adds cgroups that it cannot read to faults.
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
		case errors.Is(err, fs.ErrPermission) && d.want.Partition != PartitionNone && isKept(cgroups, d.Cgroup, d.want.CPUs):
		case err != nil:
			entry.Fault = err.Error()
		}
		all = append(all, entry)
	}
	return all
}

// isKept reports whether the files above a cgroup show that a partition there keeps all others
// off these CPUs. A tenant may have forbidden to read its own (chmod 0).
func isKept(cgroups fs.FS, cgroup string, cpus cpuset.Set) bool {
	above := path.Dir(cgroup)
	exclusive, failed := readSet(cgroups, path.Join(above, exclusiveFile))
	left, err := readSet(cgroups, path.Join(above, cpusFile+".effective"))
	return failed == nil && err == nil && cpus.IsSubsetOf(exclusive) && !cpus.Overlaps(left)
}
