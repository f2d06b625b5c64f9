package pin

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Plan is everything a pin writes, in the order it is written.
type Plan struct {
	// Container is the path of the cgroup below the mount.
	Container string
	// Grant is the wish united with what the container already has.
	Grant  Pinning
	Writes []Write
}

// Write is one value for one kernel file below the cgroup mount.
type Write struct{ File, Value string }

// String prints one line for each write: file <- value.
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

// planPin decides what to write. At every point between two writes:
//
//	exclusive(ancestor) ⊇ the CPUs of every partition below it
//	exclusive(a) ∩ exclusive(b) = ∅ for siblings a and b
//
// so leftovers are cleared first, children before parents, and then ancestors
// grow, parents before children.
func planPin(t tree, container string, want Pinning) (Plan, error) {
	self := t.find(container)
	grant, err := unite(self, want)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Container: container, Grant: grant}
	if !want.Mems.IsEmpty() && self.mems != grant.Mems {
		p.write(container, memsFile, grant.Mems.String())
	}
	switch {
	case want.CPUs.IsEmpty():
		return p, nil
	case grant.Partition == PartitionNone:
		if self.cpus != grant.CPUs {
			p.write(container, cpusFile, grant.CPUs.String())
		}
		return p, nil
	}
	if err := t.checkFree(container, grant.CPUs); err != nil {
		return Plan{}, err
	}
	p.prune(t)
	p.grow(t)
	p.partition(self)
	return p, nil
}

// unite adds what an earlier hook gave the container: several devices of one
// container run one hook each, and a container's cgroup is always fresh.
func unite(self group, want Pinning) (Pinning, error) {
	grant := want
	if !want.Mems.IsEmpty() {
		grant.Mems = want.Mems.Union(self.mems)
	}
	switch {
	case want.CPUs.IsEmpty():
	case self.state != member:
		grant.CPUs = want.CPUs.Union(self.holds())
		if kind, err := ParsePartition(strings.Fields(self.state)[0]); err == nil {
			grant.Partition = max(want.Partition, kind)
		}
	case want.Partition == PartitionNone:
		grant.CPUs = want.CPUs.Union(self.cpus)
	case !self.cpus.IsSubsetOf(want.CPUs):
		// Taking these too would take CPUs nobody granted; dropping them
		// would break a claim that asked for no partition.
		return Pinning{}, fmt.Errorf("%s of the new container is already %s: does another CPU manager run on this node? %w",
			cpusFile, self.cpus, ErrInUse)
	}
	return grant, nil
}

// checkFree finds who else holds one of cpus. A partition above the container
// is no rival but must have them all.
func (t tree) checkFree(container string, cpus cpuset.Set) error {
	for _, g := range t {
		held := g.holds()
		switch {
		case g.path == container || g.state == member:
		case isWithin(container, g.path):
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

// prune clears what dead partitions left behind: in the container's own
// top-level cgroup all of it, elsewhere only the CPUs that are wanted now, as
// a bare cpuset.cpus.exclusive there may be an administrator's. Without this a
// leftover at a sibling of an ancestor makes the kernel refuse the write.
func (p *Plan) prune(t tree) {
	top, _, _ := strings.Cut(p.Container, "/")
	for _, g := range slices.Backward(t) {
		if g.state != member || isWithin(p.Container, g.path) {
			continue
		}
		keep := g.exclusive.Difference(p.Grant.CPUs)
		if isWithin(g.path, top) {
			keep = t.heldBelow(g.path)
		}
		if keep != g.exclusive {
			p.write(g.path, exclusiveFile, keep.String())
		}
	}
}

// grow gives every ancestor exactly the CPUs of the partitions below it and the
// new ones. A partition among them has the CPUs already, see checkFree.
func (p *Plan) grow(t tree) {
	for _, g := range t {
		if g.path == p.Container || !isWithin(p.Container, g.path) || g.state != member {
			continue
		}
		cpus := t.heldBelow(g.path).Union(p.Grant.CPUs)
		if cpus != g.exclusive {
			p.write(g.path, exclusiveFile, cpus.String())
		}
	}
}

// partition makes or enlarges the container's own partition. An invalid one
// does not heal by itself: it becomes a member first.
func (p *Plan) partition(self group) {
	state, kind := self.state, p.Grant.Partition.String()
	if strings.Contains(state, "invalid") {
		p.write(p.Container, partitionFile, member)
		state = member
	}
	if self.exclusive != p.Grant.CPUs {
		p.write(p.Container, exclusiveFile, p.Grant.CPUs.String())
	}
	if self.cpus != p.Grant.CPUs {
		p.write(p.Container, cpusFile, p.Grant.CPUs.String())
	}
	if state != kind {
		p.write(p.Container, partitionFile, kind)
	}
}

func (t tree) find(name string) group {
	i := slices.IndexFunc(t, func(g group) bool { return g.path == name })
	return t[i] // readTree ends with an error where there is none
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
