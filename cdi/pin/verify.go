package pin

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// verify reads back what the kernel granted. A write that succeeds is not enough: the
// kernel accepts a partition that it then reports as invalid, and memory nodes that do
// not exist.
func (h Host) verify(target string, want Pinning) error {
	return h.step(target, "verify", func() error { return verify(h.Cgroups.FS(), target, want) })
}

func verify(cgroups fs.FS, target string, want Pinning) error {
	if !want.Mems.IsEmpty() {
		if err := verifyMems(cgroups, target, want.Mems); err != nil {
			return err
		}
	}
	if want.CPUs.IsEmpty() {
		return nil
	}
	if want.Partition != PartitionNone {
		if err := verifyPartition(cgroups, target, want); err != nil {
			return err
		}
		if err := verifySet(cgroups, target, exclusiveFile+".effective", want.CPUs); err != nil {
			return err
		}
	}
	fault := verifySet(cgroups, target, cpusFile+".effective", want.CPUs)
	if fault == nil {
		return nil
	}
	if want.Partition == PartitionNone {
		return tooNarrow(cgroups, target, want.CPUs, fault)
	}
	if granted, err := divided(cgroups, target); err != nil || granted != want.CPUs {
		return fault
	}
	return nil
}

// tooNarrow adds which cgroup above the target has fewer CPUs, if one has. The kubelet writes
// cpuset.cpus of that of all pods once, when it starts. A partition needs only
// cpuset.cpus.exclusive there.
func tooNarrow(cgroups fs.FS, target string, cpus cpuset.Set, fault error) error {
	for dir := path.Dir(target); dir != "."; dir = path.Dir(dir) {
		has, err := readSet(cgroups, path.Join(dir, cpusFile))
		if err == nil && !has.IsEmpty() && !cpus.IsSubsetOf(has) {
			return fmt.Errorf("%w: cgroup %s above it has only cpus %s: if the others came online after the kubelet's start, restart the kubelet", fault, dir, has)
		}
	}
	return fault
}

// divided returns the CPUs of a partition with those of the partitions below it. A tenant
// with a writable cgroup may make some, and only the tenant's tasks run on their CPUs.
func divided(cgroups fs.FS, partition string) (cpus cpuset.Set, err error) {
	cpus, err = readSet(cgroups, path.Join(partition, cpusFile+".effective"))
	if err != nil {
		return cpuset.Set{}, err
	}
	entries, err := fs.ReadDir(cgroups, partition)
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		child := path.Join(partition, entry.Name())
		state, err := readLine(cgroups, path.Join(child, partitionFile))
		if err != nil || !(group{state: state}).isValid() {
			continue // gone, or without a partition, and so without partitions below
		}
		if below, err := divided(cgroups, child); err == nil {
			cpus = cpus.Union(below)
		}
	}
	return cpus, err
}

func verifyPartition(cgroups fs.FS, target string, want Pinning) error {
	if want.CPUs.IsEmpty() || want.Partition == PartitionNone {
		return nil
	}
	state, err := readLine(cgroups, path.Join(target, partitionFile))
	if err != nil || state == want.Partition.String() {
		return err
	}
	err = differs(partitionFile, "reads %q, want %q", state, want.Partition)
	if !strings.Contains(state, "invalid") {
		return err // the kernel did not refuse: another program wrote to the file
	}
	return refusal(cgroups, target, want.CPUs, err)
}

// verifyMems passes over NUMA nodes without memory, which the kernel leaves out of
// cpuset.mems.effective, as long as some of those wanted have memory.
func verifyMems(cgroups fs.FS, target string, want cpuset.Set) error {
	fault := verifySet(cgroups, target, memsFile+".effective", want)
	if fault == nil {
		return nil
	}
	memory, err := readSet(cgroups, memsFile+".effective")
	if there := want.Intersection(memory); err == nil && !there.IsEmpty() && there != want {
		return verifySet(cgroups, target, memsFile+".effective", there)
	}
	return fault
}

func verifySet(cgroups fs.FS, target, file string, want cpuset.Set) error {
	granted, err := readSet(cgroups, path.Join(target, file))
	if err != nil {
		return err
	}
	if granted != want {
		return differs(file, "is %q, want %q", granted, want)
	}
	return nil
}

// inTheWayError is a refusal by the kernel because of the cpuset.cpus of other cgroups.
type inTheWayError struct {
	answer error
	found  []group
}

func (e *inTheWayError) Error() string {
	var texts []string
	for _, g := range e.found {
		texts = append(texts, fmt.Sprintf("cgroup %s has %s %s", g.path, cpusFile, g.cpus))
	}
	return fmt.Sprintf("%v: %s: %v", e.answer, strings.Join(texts, ", "), ErrInUse)
}

func (e *inTheWayError) Unwrap() []error { return []error{e.answer, ErrInUse} }

// refusal explains why the kernel refused a partition, because the kernel itself does
// not say. Either another cgroup is in the way, or the machine does not support such
// partitions.
func refusal(cgroups fs.FS, target string, wanted cpuset.Set, answer error) error {
	var found []group
	for dir := target; dir != "."; dir = path.Dir(dir) {
		entries, err := fs.ReadDir(cgroups, path.Dir(dir))
		if err != nil {
			continue // report the refusal, not this error
		}
		for _, entry := range entries {
			sibling := path.Join(path.Dir(dir), entry.Name())
			if !entry.IsDir() || sibling == dir {
				continue
			}
			cpus, err := readSet(cgroups, path.Join(sibling, cpusFile))
			if err == nil && isRival(cpus, wanted, dir == target) {
				found = append(found, group{path: sibling, cpus: cpus})
			}
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%w: %w", answer, ErrNotSupported)
	}
	return &inTheWayError{answer, found}
}

// isRival reports whether a sibling's own cpuset.cpus is in the way of wanted. No
// cpuset.cpus.exclusive may contain all CPUs of a sibling. Up to Linux 6.19, a partition
// is also invalid if its CPUs overlap those of a sibling.
func isRival(cpus, wanted cpuset.Set, partitionSibling bool) bool {
	if cpus.IsEmpty() {
		return false
	}
	return cpus.IsSubsetOf(wanted) || partitionSibling && cpus.Overlaps(wanted)
}
