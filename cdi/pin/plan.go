package pin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Plan has all writes that give a cgroup what it should have, in their order.
type Plan struct {
	// Target is the path of the cgroup below the mount.
	Target string
	Want   Pinning
	Writes []Write
}

// Write is one value for one kernel file below the cgroup mount.
type Write struct{ File, Value string }

// String has one line for each write: file <- value.
func (p Plan) String() string {
	var b strings.Builder
	for _, w := range p.Writes {
		fmt.Fprintf(&b, "%s <- %s\n", w.File, w.Value)
	}
	return b.String()
}

func (p *Plan) write(dir, file, value string) {
	p.Writes = append(p.Writes, Write{path.Join(dir, file), value})
}

// planPin decides what to write. Two invariants hold between any two writes:
//
//	exclusive(ancestor) ⊇ the CPUs of every partition below it
//	exclusive(a) ∩ exclusive(b) = ∅ for siblings a and b
//
// So the plan first clears what dead partitions left behind, children before parents. Then
// it adds CPUs to the ancestors, parents before children.
func planPin(t tree, target string, want Pinning) (Plan, error) {
	self := t.find(target)
	p := Plan{Target: target, Want: want}
	if !want.Mems.IsEmpty() && self.mems != want.Mems {
		p.write(target, memsFile, want.Mems.String())
	}
	switch {
	case want.CPUs.IsEmpty():
		return p, nil
	case want.Partition == PartitionNone:
		if self.state != member || !self.exclusive.IsEmpty() {
			p.dissolve(t, target)
		}
		if self.cpus != want.CPUs {
			p.write(target, cpusFile, want.CPUs.String())
		}
		return p, nil
	}
	if err := t.checkFree(target, want.CPUs); err != nil {
		return Plan{}, err
	}
	p.prune(t)
	p.grow(t)
	p.partition(self)
	p.trim(t, self)
	return p, nil
}

// planRelease decides how to release what a dead cgroup and its ancestors hold, whether
// the cgroup still exists or not. The invariants are those of planPin.
func planRelease(t tree, dead string) Plan {
	p := Plan{Target: dead}
	p.dissolve(t, dead)
	return p
}

// dissolve makes the target a member, so that partitions below it hold nothing. In the
// target's top-level cgroup, it then reduces cpuset.cpus.exclusive to the CPUs of the
// remaining partitions, children before parents.
func (p *Plan) dissolve(t tree, target string) {
	t = slices.Clone(t)
	for i := range t {
		if t[i].path == target && t[i].state != member {
			p.write(target, partitionFile, member)
		}
		if isWithin(t[i].path, target) {
			t[i].state = member
		}
	}
	top, _, _ := strings.Cut(target, "/")
	for _, g := range slices.Backward(t) {
		if g.state != member || !isWithin(g.path, top) {
			continue
		}
		if keep := t.heldBelow(g.path); keep != g.exclusive {
			p.write(g.path, exclusiveFile, keep.String())
		}
	}
}

// checkFree returns an error if another cgroup holds one of cpus. A partition above the
// target may hold them, but must have all of them. What an unread one holds, the kernel
// refuses.
func (t tree) checkFree(target string, cpus cpuset.Set) error {
	for _, g := range t {
		held := g.holds()
		switch {
		case g.path == target || g.state == member || g.state == unread:
		case isWithin(target, g.path):
			if !cpus.IsSubsetOf(held) {
				return fmt.Errorf("cpus %s are outside of partition %s, which has %s: %w",
					cpus.Difference(held), g.path, held, ErrInUse)
			}
		case held.Overlaps(cpus):
			return fmt.Errorf("cgroup %s holds cpus %s (partition %s): %w",
				g.path, held.Intersection(cpus), g.state, ErrInUse)
		}
	}
	return nil
}

// prune clears exclusive CPUs that dead partitions left behind. In the target's own
// top-level cgroup it clears all of them. Elsewhere it clears only the CPUs that are
// wanted now: an administrator may have set cpuset.cpus.exclusive there without a
// partition. Without prune, such CPUs of a sibling of an ancestor make the kernel refuse
// the write.
func (p *Plan) prune(t tree) {
	top, _, _ := strings.Cut(p.Target, "/")
	for _, g := range slices.Backward(t) {
		if g.state != member || isWithin(p.Target, g.path) {
			continue
		}
		keep := g.exclusive.Difference(p.Want.CPUs)
		if isWithin(g.path, top) {
			keep = t.heldBelow(g.path)
		}
		if keep != g.exclusive {
			p.write(g.path, exclusiveFile, keep.String())
		}
	}
}

// grow gives every ancestor exactly the CPUs of the partitions below it and the new
// CPUs. An ancestor that is a partition has the CPUs already, see checkFree.
func (p *Plan) grow(t tree) {
	for _, g := range t {
		if g.path == p.Target || !isWithin(p.Target, g.path) || g.state != member {
			continue
		}
		cpus := t.heldBelow(g.path).Union(p.Want.CPUs)
		if cpus != g.exclusive {
			p.write(g.path, exclusiveFile, cpus.String())
		}
	}
}

// partition makes or changes the target's own partition. An invalid partition does not
// become valid by itself: the target becomes a member first.
func (p *Plan) partition(self group) {
	state, kind := self.state, p.Want.Partition.String()
	if strings.Contains(state, "invalid") {
		p.write(p.Target, partitionFile, member)
		state = member
	}
	if self.exclusive != p.Want.CPUs {
		p.write(p.Target, exclusiveFile, p.Want.CPUs.String())
	}
	if self.cpus != p.Want.CPUs {
		p.write(p.Target, cpusFile, p.Want.CPUs.String())
	}
	if state != kind {
		p.write(p.Target, partitionFile, kind)
	}
}

// trim removes from the ancestors the CPUs that the target's partition gave up.
func (p *Plan) trim(t tree, self group) {
	if self.holds().IsSubsetOf(p.Want.CPUs) {
		return
	}
	t = slices.Clone(t)
	for i := range t {
		if t[i].path == p.Target {
			t[i].exclusive, t[i].state = p.Want.CPUs, p.Want.Partition.String()
		}
	}
	for _, g := range slices.Backward(t) {
		if g.path == p.Target || !isWithin(p.Target, g.path) || g.state != member {
			continue
		}
		keep := t.heldBelow(g.path)
		if keep != keep.Union(self.holds()) {
			p.write(g.path, exclusiveFile, keep.String())
		}
	}
}

func (t tree) find(name string) group {
	i := slices.IndexFunc(t, func(g group) bool { return g.path == name })
	return t[i] // readTree returns an error if the target does not exist
}

// heldBelow returns the CPUs of the partitions strictly below dir.
func (t tree) heldBelow(dir string) (held cpuset.Set) {
	for _, g := range t {
		if g.path != dir && isWithin(g.path, dir) {
			held = held.Union(g.holds())
		}
	}
	return held
}
