// Package pin gives the cgroup of a container or a pod its CPUs and memory nodes. A
// remote cpuset partition keeps every other task off those CPUs. The package reads back
// what the kernel granted, and repairs the cgroup if another program changes it.
//
// It follows "Cpuset" in Documentation/admin-guide/cgroup-v2.rst (Linux 6.11
// and later): every ancestor lists the CPUs in cpuset.cpus.exclusive and stays
// a member; only the target cgroup becomes a partition root. The order is always
// read, plan, record, apply, verify. A record says what one cgroup was given. What
// each cgroup should have is decided from all records together. Decision and plan
// are pure, and the plan prints itself.
//
// The package never decides which CPUs a container has, never writes to a partition that
// it has no record of, and never creates a kernel file. Callers hold the host's [Lock]
// while they call [Pin] or [Probe]. Without it, two plans could start from the same
// snapshot, and the second would undo what the first wrote to the ancestors.
//
// It is larger than other packages because hook, keeper and probe share the records and
// the plan, and because the hook must load little: everything that the three do to a
// cgroup is here, and imports almost nothing.
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
	// ErrNotSupported says that this kernel or this cgroup hierarchy cannot have
	// the partition: there are no cpuset files, or the kernel refused the partition.
	ErrNotSupported = errors.New("not supported")
	// ErrInUse says that another cgroup holds one of the CPUs, or that a live
	// record is in conflict with the claim.
	ErrInUse = errors.New("in use")
)

// Partition says how other tasks are kept off a container's CPUs. The kinds are
// ordered: if two claims of one cgroup differ, the higher kind applies.
type Partition int

const (
	// PartitionNone restricts the cgroup to its CPUs, and keeps no other task off them.
	PartitionNone Partition = iota
	// PartitionRoot keeps other tasks off; the scheduler balances load inside.
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

// Pinning is what one claim gives a cgroup, or what all claims of the cgroup give it
// together. Without CPUs, the cgroup's CPUs stay as they are and there is no partition.
// Without Mems, its memory nodes stay as they are.
type Pinning struct {
	CPUs      cpuset.Set `json:"cpus"`
	Mems      cpuset.Set `json:"mems"`
	Partition Partition  `json:"partition"`
}

func (p Pinning) united(other Pinning) Pinning {
	return Pinning{p.CPUs.Union(other.CPUs), p.Mems.Union(other.Mems), max(p.Partition, other.Partition)}
}

// String names the CPUs, or the memory nodes if there are no CPUs.
func (p Pinning) String() string {
	if p.CPUs.IsEmpty() {
		return "mems " + p.Mems.String()
	}
	return "cpus " + p.CPUs.String()
}

// Pin gives a container the CPUs and memory nodes of one claim, in addition to those
// that earlier hooks gave the same cgroup. It returns nil only if the kernel shows
// exactly that. The container is the path of its cgroup below the mount, without a
// leading slash. Its first process is already in the cgroup. The scope says whether
// that cgroup or its parent, the cgroup of the pod, becomes the partition. In the pod's
// partition, each container has only its own CPUs.
//
// Pin first releases what dead records left, and fails if it cannot release CPUs that the
// claim gets. It writes its record before it writes to the
// kernel. If another pod has the same CPUs of the claim, both lose their partition. A
// [Keeper] restores it when the other user is gone. Last, Pin lifts CPU quotas that only
// throttle. On error the container's process must not start: Pin undoes its record and its
// partition, and other containers keep what they have. Calling Pin again is safe and writes
// nothing. The error does not name the container: the caller adds the container and the
// claim. It is a [RefusedError] if Pin has written something.
func Pin(h Host, container string, scope Scope, claim Claim) error {
	if err := checkController(h.Cgroups.FS(), container); err != nil {
		return err
	}
	if err := checkExclusive(h.Cgroups.FS(), container, claim.Pinning); err != nil {
		return err
	}
	live, err := h.settle(func(dead record) bool { return dead.wish().CPUs.Overlaps(claim.CPUs) })
	if err != nil {
		return err
	}
	admitted, work, err := admitAndDecide(live, h.Boot, container, scope, claim)
	if err != nil {
		return err
	}
	admitted = withQuotas(h.Cgroups.FS(), admitted)
	planned := Plan{Target: container, Want: claim.Pinning}
	h.planned = &planned
	err = h.carryOut(live, admitted, work)
	if err == nil {
		// A quota stops no container. The keeper tries again when it looks, and says what is wrong.
		_, _ = h.settleQuotas(admitted, firstQuotaWrites)
		return nil
	}
	h.planned = nil
	err = &RefusedError{err, planned}
	if undo := h.undo(live, work, admitted); undo != nil {
		return fmt.Errorf("%w; roll back the pin: %w", err, undo)
	}
	return err
}

// admitAndDecide returns the records that a hook has to write, and what their cgroups, and
// those that share a claim with them, should have.
func admitAndDecide(live []record, boot, container string, scope Scope, claim Claim) (admitted []record, work []decision, err error) {
	if admitted, err = admit(live, boot, container, scope, claim); err != nil {
		return nil, nil, err
	}
	return admitted, touched(decide(replaced(live, admitted)), admitted), nil
}

// settle loads the records and releases what dead records left. What cannot be released is
// an error only if needed says so of its record; else it is left to the keeper, which tries
// again and reports it.
func (h Host) settle(needed func(dead record) bool) (live []record, err error) {
	// The keeper reports damaged records and cgroups that cannot be read. Such a record
	// belongs to another cgroup, or this hook replaces it now.
	list, _, err := loadRecords(h.Records.FS())
	if err != nil {
		return nil, err
	}
	live, dead, _ := split(h.Cgroups.FS(), h.Boot, list)
	for _, r := range dead {
		if err := h.bury(r); err != nil && needed(r) {
			return nil, err
		}
	}
	return live, nil
}

// carryOut writes the new records, then applies the decisions to the kernel.
func (h Host) carryOut(live, admitted []record, work []decision) error {
	for _, r := range admitted {
		if slices.ContainsFunc(live, func(old record) bool { return reflect.DeepEqual(old, r) }) {
			continue
		}
		if err := h.save(r); err != nil {
			return err
		}
	}
	if !isolatedCPUs(admitted).IsEmpty() {
		if err := h.settleWorkqueues(replaced(live, admitted)); err != nil {
			return err
		}
	}
	return joinErrors(h.enforce(work, live)...)
}

// undo restores the state before the call: first in the kernel, then in the records. If
// this process dies in between, the records name what is left to do.
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
	return joinErrors(errs...)
}

// loosen takes back the cpuset.cpus of a pod. Otherwise the pod's other containers
// would be restricted to CPUs that the pod did not get.
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

// joinErrors is [errors.Join] with the text on one line.
func joinErrors(errs ...error) (all error) {
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
