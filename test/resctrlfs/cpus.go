package resctrlfs

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// writeCPUs moves CPUs to a group. CPUs that the group loses return to its parent, or to
// the root group.
func (f *FS) writeCPUs(g *group, text string, parse func(string) (cpuset.Set, error)) error {
	f.newCommand(Linux72)
	cpus, err := parse(text)
	if err != nil {
		f.say("Bad CPU list/mask")
		return err
	}
	if !cpus.IsSubsetOf(f.online) {
		return f.refuse(syscall.EINVAL, "Can only assign online CPUs")
	}
	if g.parent != nil {
		return f.writeMonitoredCPUs(g, cpus)
	}
	dropped := g.cpus.Difference(cpus)
	if g == f.root && !dropped.IsEmpty() {
		return f.refuse(syscall.EINVAL, "Can't drop CPUs from default group")
	}
	f.root.cpus = f.root.cpus.Union(dropped)
	added := cpus.Difference(g.cpus)
	for _, other := range f.controlGroups() {
		if other == g || !other.cpus.Overlaps(added) {
			continue
		}
		other.cpus = other.cpus.Difference(added)
		for _, child := range other.children {
			child.cpus = child.cpus.Intersection(other.cpus)
		}
	}
	g.cpus = cpus
	for _, child := range g.children {
		child.cpus = cpuset.Set{} // whatever changed, and if nothing did
	}
	return nil
}

// writeMonitoredCPUs writes those of a monitoring group. Its parent keeps them.
func (f *FS) writeMonitoredCPUs(g *group, cpus cpuset.Set) error {
	if !cpus.IsSubsetOf(g.parent.cpus) {
		return f.refuse(syscall.EINVAL, "Can only add CPUs to mongroup that belong to parent")
	}
	for _, sibling := range g.parent.children {
		if sibling != g {
			sibling.cpus = sibling.cpus.Difference(cpus.Difference(g.cpus))
		}
	}
	g.cpus = cpus
	return nil
}

// maskBits returns how many bits a mask of these CPUs has: the kernel's nr_cpu_ids.
func maskBits(cpus cpuset.Set) (bits int) {
	for cpu := range cpus.All() {
		bits = cpu + 1
	}
	return bits
}

// cpuMask prints a mask in groups of 32 bits, the first as wide as it has to be.
func (f *FS) cpuMask(cpus cpuset.Set) string {
	const groupBits = 32
	var groups []string
	for low := (f.maskBits - 1) / groupBits * groupBits; low >= 0; low -= groupBits {
		var value uint32
		for i := range groupBits {
			if cpus.Contains(low + i) {
				value |= 1 << i
			}
		}
		groups = append(groups, fmt.Sprintf("%0*x", (min(groupBits, f.maskBits-low)+3)/4, value))
	}
	return strings.Join(groups, ",") + "\n"
}

func (f *FS) parseMask(text string) (cpuset.Set, error) {
	cpus, err := cpuset.ParseMask(text)
	switch {
	case strings.TrimSpace(text) == "":
		return cpuset.Set{}, nil
	case err != nil:
		return cpuset.Set{}, syscall.EINVAL
	case maskBits(cpus) > f.maskBits:
		return cpuset.Set{}, syscall.EOVERFLOW
	}
	return cpus, nil
}

// parseList takes the lists that the kernel prints, white space between ranges, and
// strides: 0-7:1/2 is the first of each two CPUs.
func (f *FS) parseList(text string) (cpus cpuset.Set, err error) {
	separates := func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' }
	for _, span := range strings.FieldsFunc(text, separates) {
		span, stride, hasStride := strings.Cut(span, ":")
		first, last, isRange := strings.Cut(span, "-")
		if !isRange {
			last = first
		}
		used, size := uint64(1), uint64(1)
		if hasStride {
			usedText, sizeText, _ := strings.Cut(stride, "/")
			used, _ = strconv.ParseUint(usedText, 10, 32)
			size, _ = strconv.ParseUint(sizeText, 10, 32)
		}
		from, err := strconv.ParseUint(first, 10, 32)
		to, toErr := strconv.ParseUint(last, 10, 32)
		switch {
		case err != nil || toErr != nil || from > to || size == 0 || used > size || hasStride && !isRange:
			return cpuset.Set{}, syscall.EINVAL
		case to >= uint64(f.maskBits):
			return cpuset.Set{}, syscall.ERANGE
		}
		for cpu := from; cpu <= to; cpu++ {
			if (cpu-from)%size < used {
				cpus.Insert(int(cpu))
			}
		}
	}
	return cpus, nil
}
