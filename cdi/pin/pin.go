// Package pin gives the cgroup of a container or a pod its CPUs and memory
// nodes, keeps every other task off those CPUs with a remote cpuset partition,
// reads back what the kernel granted, and keeps it so.
//
// It follows "Cpuset" in Documentation/admin-guide/cgroup-v2.rst (Linux 6.11
// and later): every ancestor lists the CPUs in cpuset.cpus.exclusive and stays
// a member; only the target cgroup becomes a partition. The order is always
// read, plan, record, apply, verify. The records say what each cgroup was given;
// what it should have is decided from all of them together. Decision and plan
// are pure, and the plan prints itself.
//
// The package never decides which CPUs a container has, never writes to a
// partition that it has no record of, and never creates a kernel file. Callers
// hold the [Lock] of the host around [Pin] and [Probe]: of two plans made from
// the same snapshot the second would undo the first one's ancestors.
package pin

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var (
	// ErrNotSupported says that this kernel or this cgroup tree cannot hold
	// the partition: no cpuset files, or the kernel refused the partition.
	ErrNotSupported = errors.New("not supported")
	// ErrInUse says that another cgroup holds one of the CPUs.
	ErrInUse = errors.New("in use")
)

// Partition says how a container's CPUs are kept from other tasks. The kinds
// are ordered: where two claims of one cgroup differ, the higher one holds.
type Partition int

const (
	// PartitionNone restricts the cgroup to its CPUs and nobody else.
	PartitionNone Partition = iota
	// PartitionRoot keeps other tasks off; the scheduler balances inside.
	PartitionRoot
	// PartitionIsolated is PartitionRoot without load balancing inside.
	PartitionIsolated
)

var partitionNames = [...]string{"none", "root", "isolated"}

// String returns the name that [ParsePartition] reads.
func (p Partition) String() string { return partitionNames[p] }

// ParsePartition reads one of none, root and isolated.
func ParsePartition(name string) (Partition, error) {
	for p, known := range partitionNames {
		if name == known {
			return Partition(p), nil
		}
	}
	return 0, fmt.Errorf("partition %q: want one of %s", name, strings.Join(partitionNames[:], ", "))
}

// MarshalText returns the name.
func (p Partition) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name.
func (p *Partition) UnmarshalText(text []byte) (err error) {
	*p, err = ParsePartition(string(text))
	return err
}

// Pinning is what one claim gives a cgroup, or all of its claims together. No
// CPUs means that the CPUs stay as they are and nothing is partitioned; no Mems
// likewise.
type Pinning struct {
	CPUs      cpuset.Set `json:"cpus"`
	Mems      cpuset.Set `json:"mems"`
	Partition Partition  `json:"partition"`
}

func (p Pinning) united(other Pinning) Pinning {
	return Pinning{p.CPUs.Union(other.CPUs), p.Mems.Union(other.Mems), max(p.Partition, other.Partition)}
}

// String names the CPUs, or the memory nodes where there are no CPUs.
func (p Pinning) String() string {
	if p.CPUs.IsEmpty() {
		return "mems " + p.Mems.String()
	}
	return "cpus " + p.CPUs.String()
}

// Pin gives a container what one claim says, united with what earlier hooks of
// the same cgroup were told, and returns nil only when the kernel shows exactly
// that. The container is the path of its cgroup below the mount, without leading
// slash, with its first process in it; the scope says whether that cgroup or
// its parent, the pod's, becomes the partition.
//
// It records before it writes to the kernel. Where the claim has CPUs in
// another pod, both lose their partition until a [Keeper] gives it back. What
// dead records left is released first. On error the container's process must
// not start: its record and its partition are undone, what others have stays.
// Calling Pin again is safe and writes nothing. The error does not name the
// container: the caller does, who knows the claim too.
func Pin(h Host, container string, scope Scope, claim Claim) error {
	if err := checkController(h.Cgroups.FS(), container); err != nil {
		return err
	}
	live, err := h.settle()
	if err != nil {
		return err
	}
	admitted, err := admit(live, h.Boot, container, scope, claim)
	if err != nil {
		return err
	}
	work := touched(decide(replaced(live, admitted)), admitted)
	err = h.carryOut(live, admitted, work)
	if err == nil {
		err = verifyInside(h.Cgroups.FS(), container, admitted[0], claim.CPUs)
	}
	if err == nil {
		return nil
	}
	if undo := h.undo(live, work, admitted); undo != nil {
		return fmt.Errorf("%w; give the cpus back: %w", err, undo)
	}
	return err
}

// settle loads the records and releases what dead ones left.
func (h Host) settle() (live []record, err error) {
	// A damaged record is the keeper's to report: it is about somebody else, or
	// else it is replaced now.
	list, _, err := loadRecords(h.Records.FS())
	if err != nil {
		return nil, err
	}
	live, dead, err := h.split(list)
	if err != nil {
		return nil, err
	}
	for _, r := range dead {
		if err := h.bury(r); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// carryOut records what is new, then has the kernel do it.
func (h Host) carryOut(live, admitted []record, work []decision) error {
	for _, r := range admitted {
		if slices.ContainsFunc(live, func(old record) bool { return reflect.DeepEqual(old, r) }) {
			continue
		}
		if err := h.save(r); err != nil {
			return err
		}
	}
	return oneLine(h.enforce(work, live)...)
}

// undo makes everything as it was before: first for the kernel, then in the
// records, which name what is left to do if this process dies here.
func (h Host) undo(live []record, work []decision, admitted []record) error {
	before := decide(live)
	var back []decision
	var errs []error
	for _, d := range work {
		i := slices.IndexFunc(before, func(old decision) bool { return old.Cgroup == d.Cgroup })
		if i >= 0 {
			back = append(back, before[i])
			continue
		}
		errs = append(errs, h.release(d.record))
		errs = append(errs, h.loosen(d))
	}
	errs = append(errs, h.enforce(back, live)...)
	for _, r := range admitted {
		i := slices.IndexFunc(live, func(old record) bool { return old.Cgroup == r.Cgroup })
		if i >= 0 {
			errs = append(errs, h.save(live[i]))
		} else {
			errs = append(errs, h.forget(r))
		}
	}
	return oneLine(errs...)
}

// loosen takes back the cpuset.cpus of a pod: its other containers are not to be
// held to CPUs that it did not get.
func (h Host) loosen(d decision) error {
	cpus, err := readSet(h.Cgroups.FS(), path.Join(d.Cgroup, cpusFile))
	if isGone(err) || err == nil && (d.Scope != ScopePod || cpus != d.want.CPUs) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.writeRest(d.Cgroup, cpuset.Set{})
}

// oneLine is [errors.Join] with a text of one line.
func oneLine(errs ...error) (all error) {
	for _, err := range errs {
		switch {
		case err == nil:
		case all == nil:
			all = err
		default:
			all = fmt.Errorf("%w; %w", all, err)
		}
	}
	return all
}
