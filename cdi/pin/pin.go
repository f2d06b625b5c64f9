// Package pin gives one container's cgroup its CPUs and memory nodes, keeps
// every other task off those CPUs with a remote cpuset partition, and reads
// back what the kernel granted.
//
// It follows "Cpuset" in Documentation/admin-guide/cgroup-v2.rst (Linux 6.11
// and later): every ancestor lists the CPUs in cpuset.cpus.exclusive and stays
// a member; only the container's own cgroup becomes a partition. The order is
// always snapshot, plan, apply, verify; the plan is pure and prints itself.
//
// The package never decides which CPUs a container has, never writes to a
// cgroup's partition other than the container's, and never creates a kernel
// file. Callers hold the [Lock] of the host around [Pin] and [Probe]: of two plans
// made from the same snapshot the second would undo the first one's ancestors.
package pin

import (
	"errors"
	"fmt"
	"os"
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
// are ordered: where two claims of one container differ, the higher one holds.
type Partition int

const (
	// PartitionNone restricts the container to its CPUs and nobody else.
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

// Pinning is what one claim gives a container. No CPUs means that the CPUs
// stay as they are and nothing is partitioned; no Mems likewise.
type Pinning struct {
	CPUs, Mems cpuset.Set
	Partition  Partition
}

// String names the CPUs, or the memory nodes where there are no CPUs.
func (p Pinning) String() string {
	if p.CPUs.IsEmpty() {
		return "mems " + p.Mems.String()
	}
	return "cpus " + p.CPUs.String()
}

// Pin gives the cgroup at path container (no leading slash, below cgroups, the
// cgroup v2 mount) what want says, united with what an earlier Pin gave it,
// and returns nil only when the kernel shows exactly that. CPUs or memory
// nodes that are there already count as an earlier Pin's: the kubelet gives none
// while its own managers are off. On error the container's process must not
// start; a partition that this call changed is dissolved. Calling Pin again is
// safe and writes nothing. The error does not name the container: the caller
// does, who knows the claim too.
func Pin(cgroups *os.Root, container string, want Pinning) error {
	tree, err := readTree(cgroups.FS(), container)
	if err != nil {
		return err
	}
	plan, err := planPin(tree, container, want)
	if err != nil {
		return err
	}
	err = apply(cgroups, plan)
	if err == nil {
		err = verify(cgroups.FS(), plan)
	}
	if err == nil {
		return nil
	}
	if undo := release(cgroups, plan); undo != nil {
		return fmt.Errorf("%w; give the cpus back: %w", err, undo)
	}
	return err
}
