package resctrlfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// takeRMID gives a group an RMID. While one is in limbo, the answer is to try again.
func (f *FS) takeRMID(g *group) error {
	switch {
	case f.machine.RMIDs == 0:
		return nil
	case len(f.free) > 0:
		g.rmid, f.free = f.free[0], f.free[1:]
		return nil
	case len(f.limbo) > 0:
		return f.refuse(syscall.EBUSY, "Out of RMIDs")
	}
	return f.refuse(syscall.ENOSPC, "Out of RMIDs")
}

// releaseRMID puts the RMID of a group that is removed into limbo, until [FS.Settle].
func (f *FS) releaseRMID(g *group) {
	switch {
	case f.machine.RMIDs == 0:
	case slices.Contains(f.machine.Features, occupancy):
		f.limbo = append(f.limbo, g.rmid)
		slices.Sort(f.limbo) // the kernel looks at them in this order
	default:
		f.free = append(f.free, g.rmid)
	}
	for key := range f.counters {
		if key.group == g {
			delete(f.counters, key)
		}
	}
}

// occupancy is the event without which the kernel cannot know that an RMID is in no cache.
const occupancy = "llc_occupancy"

// Settle does what the kernel does once a second: RMIDs in limbo can be used again, since
// here no cache has their lines. With a threshold of 0 they stay there.
func (f *FS) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.threshold > 0 {
		f.free = append(f.free, f.limbo...)
		f.limbo = nil
	}
}

// occupancyUnit is the unit of occupancy counters of the test nodes' processor, in bytes.
const occupancyUnit = 32 << 10

func (f *FS) roundedOccupancy(bytes int) int { return bytes / occupancyUnit * occupancyUnit }

// largestThreshold is the size of one L3.
func (f *FS) largestThreshold() int {
	if len(f.machine.Caches) == 0 {
		return 0
	}
	return f.machine.Caches[0].Bytes
}

// writeThreshold does not change last_cmd_status.
func (f *FS) writeThreshold(text string) error {
	value, valid := parseUnsigned(text, 10)
	if !valid || value > uint64(f.largestThreshold()) {
		return syscall.EINVAL
	}
	f.threshold = f.roundedOccupancy(int(value))
	return nil
}

// counter is an event of a group in one cache.
type counter struct {
	group *group
	cache int
	event string
}

// SetCounter sets what a group's counter reads, such as 4096, Unavailable or Error. group
// is a folder, such as "." or mon_groups/a. It returns an error if there is no such group.
func (f *FS) SetCounter(group string, cache int, event, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.find(group)
	if err != nil || n.kind != isGroup {
		return fmt.Errorf("set %s of cache %d to %s: %q is no group", event, cache, value, group)
	}
	f.counters[counter{n.group, cache, event}] = value
	return nil
}

// counterText is the sum of a control group and its monitoring groups. If one of them has
// a number, those that have none do not count.
func (f *FS) counterText(g *group, cache int, event string) string {
	sum, hasNumber := uint64(0), false
	for _, member := range append([]*group{g}, g.children...) {
		text := f.counters[counter{member, cache, event}]
		if text == "" {
			text = "0"
		}
		if number, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64); err == nil {
			sum += number
			hasNumber = true
		}
	}
	if !hasNumber {
		return f.counters[counter{g, cache, event}] + "\n"
	}
	return fmt.Sprintln(sum)
}
