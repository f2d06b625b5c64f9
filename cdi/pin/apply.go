package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// apply makes the writes in order and stops at the first the kernel refuses.
func apply(cgroups *os.Root, p Plan) error {
	for _, w := range p.Writes {
		err := writeKernelFile(cgroups, w.File, w.Value)
		if err == nil {
			continue
		}
		err = fmt.Errorf("%w (value %q)", err, w.Value)
		if errors.Is(err, syscall.EINVAL) && path.Base(w.File) != memsFile {
			return refusal(cgroups.FS(), p, err)
		}
		return err
	}
	return nil
}

// verify reads back what the kernel made of the writes: it answers OK to a
// partition it then calls invalid, and to memory nodes that are not there.
func verify(cgroups fs.FS, p Plan) error {
	if !p.Grant.Mems.IsEmpty() {
		if err := verifySet(cgroups, p, memsFile+".effective", p.Grant.Mems); err != nil {
			return err
		}
	}
	if p.Grant.CPUs.IsEmpty() {
		return nil
	}
	if p.Grant.Partition != PartitionNone {
		state, err := readLine(cgroups, path.Join(p.Container, partitionFile))
		if err != nil {
			return err
		}
		if state != p.Grant.Partition.String() {
			return refusal(cgroups, p, fmt.Errorf("%s reads %q, want %q",
				partitionFile, state, p.Grant.Partition))
		}
		if err := verifySet(cgroups, p, exclusiveFile+".effective", p.Grant.CPUs); err != nil {
			return err
		}
	}
	return verifySet(cgroups, p, cpusFile+".effective", p.Grant.CPUs)
}

func verifySet(cgroups fs.FS, p Plan, file string, want cpuset.Set) error {
	granted, err := readSet(cgroups, path.Join(p.Container, file))
	if err != nil {
		return err
	}
	if granted != want {
		return fmt.Errorf("%s is %q, want %q", file, granted, want)
	}
	return nil
}

// release gives the CPUs back after an error. What the ancestors keep is
// cleared by the next plan.
func release(cgroups *os.Root, p Plan) error {
	if p.Grant.CPUs.IsEmpty() || p.Grant.Partition == PartitionNone {
		return nil
	}
	err := writeKernelFile(cgroups, path.Join(p.Container, partitionFile), member)
	if err != nil {
		return err
	}
	return writeKernelFile(cgroups, path.Join(p.Container, exclusiveFile), "")
}

// refusal explains why the kernel refused a partition, which it does not say
// itself: a cgroup in the way, or else a machine that has no such partitions.
func refusal(cgroups fs.FS, p Plan, answer error) error {
	var found []string
	for dir := p.Container; dir != "."; dir = path.Dir(dir) {
		entries, err := fs.ReadDir(cgroups, path.Dir(dir))
		if err != nil {
			continue // the answer stays the error to report
		}
		for _, entry := range entries {
			sibling := path.Join(path.Dir(dir), entry.Name())
			if !entry.IsDir() || sibling == dir {
				continue
			}
			cpus, err := readSet(cgroups, path.Join(sibling, cpusFile))
			if err == nil && isRival(cpus, p.Grant.CPUs, dir == p.Container) {
				found = append(found, fmt.Sprintf("cgroup %s has %s %s", sibling, cpusFile, cpus))
			}
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%w: %w", answer, ErrNotSupported)
	}
	return fmt.Errorf("%w: %s: %w", answer, strings.Join(found, ", "), ErrInUse)
}

// isRival reports whether a sibling's own cpuset.cpus is in the way of wanted:
// no exclusive set may hold all of a sibling's CPUs, and up to Linux 6.19 a
// partition is invalid when a sibling's CPUs meet its own.
func isRival(cpus, wanted cpuset.Set, partitionSibling bool) bool {
	if cpus.IsEmpty() {
		return false
	}
	return cpus.IsSubsetOf(wanted) || partitionSibling && cpus.Overlaps(wanted)
}

// writeKernelFile writes value in one write(2), to a file that must be there.
// The line feed lets an empty value reach the kernel, which then clears the set.
func writeKernelFile(cgroups *os.Root, name, value string) error {
	file, err := cgroups.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() // the kernel answers to the write, not to the close
	_, err = file.WriteString(value + "\n")
	return err
}
