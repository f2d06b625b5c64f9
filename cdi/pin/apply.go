package pin

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// enforce applies the decisions to the kernel and verifies them. It returns one error
// for each decision: nil if the kernel shows exactly what was decided, or if the cgroup
// is gone. Cgroups that lose a partition come first, because another cgroup may need
// their CPUs. The cgroups of the records in live keep their cpuset.cpus, even if it is
// in the way.
func (h Host) enforce(work []decision, live []record) []error {
	errs := make([]error, len(work))
	for _, partition := range []bool{false, true} {
		for i, d := range work {
			if (d.want.Partition != PartitionNone) == partition {
				errs[i] = h.give(d.Cgroup, d.want, live)
			}
		}
	}
	for i, d := range work {
		if errs[i] == nil {
			errs[i] = h.verify(d.Cgroup, d.want)
		}
		if errs[i] != nil && d.want.Partition == PartitionNone {
			errs[i] = h.reclaimUnrefused(d, errs[i])
		}
		if hasEnded(h.Cgroups.FS(), d.Cgroup, errs[i]) {
			errs[i] = nil
		}
	}
	return errs
}

// reclaimUnrefused gets CPUs back that the kernel has lost, for a cgroup without a partition:
// the kernel refuses nothing there, but does not grant them. Fault is what verify says.
func (h Host) reclaimUnrefused(d decision, fault error) error {
	reclaimed, err := h.reclaim(d.Cgroup, d.want.CPUs)
	switch {
	case err != nil:
		return fmt.Errorf("%w; %w", fault, err)
	case reclaimed:
		return h.verify(d.Cgroup, d.want)
	}
	return fault
}

// give plans and applies. If the kernel refuses the partition because it has lost CPUs,
// give gets them back and tries again. If it refuses because of the cpuset.cpus of
// siblings, give removes the partition's CPUs there and tries again.
func (h Host) give(target string, want Pinning, live []record) error {
	err := h.giveOnce(target, want)
	if errors.Is(err, ErrNotSupported) || errors.Is(err, ErrInUse) {
		reclaimed, failed := h.reclaim(target, want.CPUs)
		if failed != nil {
			return fmt.Errorf("%w; %w", err, failed)
		}
		if reclaimed {
			err = h.giveOnce(target, want)
		}
	}
	inTheWay := (*inTheWayError)(nil)
	if !errors.As(err, &inTheWay) {
		return err
	}
	p := planClear(target, want.CPUs, inTheWay.found, live)
	if len(p.Writes) == 0 {
		return err
	}
	h.note(p)
	for _, w := range p.Writes {
		err := h.write(w)
		if errors.Is(err, syscall.ENOSPC) {
			err = h.writeRest(path.Dir(w.File), want.CPUs)
		}
		if err != nil && !isGone(err) {
			return err
		}
	}
	return h.giveOnce(target, want)
}

// writeRest gives a cgroup the CPUs that its parent has, except those in but. It stands
// in for clearing cpuset.cpus, which the kernel refuses with ENOSPC while a cgroup has
// tasks.
func (h Host) writeRest(cgroup string, but cpuset.Set) error {
	all, err := readSet(h.Cgroups.FS(), path.Join(path.Dir(cgroup), cpusFile+".effective"))
	if err != nil {
		return err
	}
	return h.write(Write{path.Join(cgroup, cpusFile), all.Difference(but).String()})
}

func (h Host) giveOnce(target string, want Pinning) error {
	t, err := readTree(h.Cgroups.FS(), target)
	if err != nil {
		return err
	}
	if err := checkExclusive(h.Cgroups.FS(), target, want); err != nil {
		return err
	}
	p, err := planPin(t, target, want)
	if err != nil {
		return err
	}
	if err := h.apply(p); err != nil {
		return err
	}
	if len(p.Writes) == 0 {
		return nil // the kernel had nothing to refuse
	}
	return verifyPartition(h.Cgroups.FS(), target, want)
}

// release takes back what a record's cgroup and its ancestors hold. A cgroup that
// vanishes meanwhile no longer holds anything.
func (h Host) release(r record) error {
	if r.wish().CPUs.IsEmpty() {
		return nil
	}
	var t tree
	if err := t.walk(h.Cgroups.FS(), ""); err != nil {
		return err
	}
	for _, g := range t {
		if g.fault != nil && g.path != r.Cgroup && isWithin(r.Cgroup, g.path) {
			return fmt.Errorf("release cgroup %s: %w", r.Cgroup, g.fault)
		}
	}
	for _, w := range planRelease(t, r.Cgroup).Writes {
		if err := h.write(w); err != nil && !isGone(err) && !h.mustKeep(w, err) {
			return fmt.Errorf("release cgroup %s: %w", r.Cgroup, err)
		}
	}
	return nil
}

// mustKeep reports whether a top-level cgroup has to keep the exclusive CPUs that no partition
// in it needs: Linux 6.19 and older refuse to clear them while another program's partition
// beside it has CPUs of its cpuset.cpus. They stop nobody in the cgroup, where all pods are,
// and the next write that the kernel takes replaces them.
func (h Host) mustKeep(w Write, err error) bool {
	own := path.Dir(w.File)
	if path.Base(w.File) != exclusiveFile || w.Value != "" || path.Dir(own) != "." || !errors.Is(err, syscall.EINVAL) {
		return false
	}
	cpus, err := readSet(h.Cgroups.FS(), path.Join(own, cpusFile))
	if err != nil {
		return false
	}
	var t tree
	if err := t.walk(h.Cgroups.FS(), ""); err != nil {
		return false
	}
	return slices.ContainsFunc(t, func(g group) bool {
		return g.path != own && path.Dir(g.path) == "." && g.isValid() && g.holds().Overlaps(cpus)
	})
}

// bury releases what the cgroup of a dead record left, then removes the record.
func (h Host) bury(r record) error {
	if r.wish().Partition == PartitionIsolated {
		if err := h.awaitReleaser(); err != nil {
			return err
		}
	}
	if err := h.release(r); err != nil {
		return err
	}
	return h.forget(r)
}

// apply makes the writes in order and stops at the first that the kernel refuses.
func (h Host) apply(p Plan) error {
	h.note(p)
	for _, w := range p.Writes {
		err := h.write(w)
		if err == nil || h.mustKeep(w, err) {
			continue
		}
		err = fmt.Errorf("%w (value %q)", err, w.Value)
		if errors.Is(err, syscall.EINVAL) && path.Base(w.File) != memsFile {
			return refusal(h.Cgroups.FS(), p.Target, p.Want.CPUs, err)
		}
		return err
	}
	return nil
}

// note keeps what is planned, for an error.
func (h Host) note(p Plan) {
	if h.planned != nil {
		h.planned.Writes = append(h.planned.Writes, p.Writes...)
	}
}

// planClear removes CPUs from the cpuset.cpus of the target's siblings that are in the
// way. A sibling whose cpuset.cpus becomes empty has the CPUs of its parent. Cgroups
// with records keep their CPUs, because claims give them. Cgroups further up also keep
// theirs, because they belong to the administrator.
func planClear(target string, cpus cpuset.Set, found []group, live []record) Plan {
	p := Plan{Target: target}
	for _, g := range found {
		recorded := slices.ContainsFunc(live, func(r record) bool { return isWithin(r.Cgroup, g.path) })
		if path.Dir(g.path) == path.Dir(target) && !recorded {
			p.write(g.path, cpusFile, g.cpus.Difference(cpus).String())
		}
	}
	return p
}

func (h Host) write(w Write) error {
	return h.step(w.File, w.Value, func() error { return writeKernelFile(h.Cgroups, w.File, w.Value) })
}

// writeKernelFile writes value with one write(2), to a file that must exist. The
// newline lets an empty value reach the kernel, which then clears the set.
func writeKernelFile(cgroups *os.Root, name, value string) error {
	file, err := cgroups.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close() // the kernel reports errors at the write, not at the close
	_, err = file.WriteString(value + "\n")
	return err
}
