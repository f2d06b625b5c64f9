package resctrl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// place is one cache. Code and data of a cache are apart in schemata, but they share its
// ways.
type place struct {
	level string // L2 or L3
	id    int
}

func (p place) String() string { return fmt.Sprintf("%s cache %d", p.level, p.id) }

func placeOf(m numa.CacheMask) place {
	return place{strings.TrimSuffix(strings.TrimSuffix(m.Resource, "CODE"), "DATA"), m.Cache}
}

// member is a group while a plan is made: what it has, and what it should have.
type member struct {
	want   Group
	name   string // for people
	mode   numa.ResctrlMode
	cpus   cpuset.Set
	masks  []numa.CacheMask // what it has
	wishes []numa.CacheMask // what it should have, for each of masks that is named
	// bandwidths are those that have to be written.
	bandwidths []numa.CacheBandwidth
	isDefault  bool
	hasTasks   bool
	failed     bool // it stays as it is
}

// newMember compares a group with what it should have. It leaves out caches without an
// online CPU, and returns an error for resources that the machine does not have.
func newMember(info numa.Resctrl, group numa.ResctrlGroup, want Group) (*member, error) {
	m := &member{
		want: want, name: nameOf(group.Name), mode: group.Mode, cpus: group.CPUs, masks: slices.Clone(group.Schemata.Masks),
		isDefault: group.Name == "",
		hasTasks:  group.Tasks == numa.HasTasks || group.Tasks == numa.TasksUnknown && want.Joined,
	}
	for _, wish := range want.Schemata.Masks {
		if !slices.ContainsFunc(info.Caches, func(c numa.CacheAllocation) bool { return c.Name == wish.Resource }) {
			return m, fmt.Errorf("%s cannot be shared out on this node as it is mounted", wish.Resource)
		}
		if _, online := group.Schemata.Mask(wish.Resource, wish.Cache); online {
			m.wishes = append(m.wishes, wish)
		}
	}
	for _, wish := range want.Schemata.Bandwidths {
		if !slices.ContainsFunc(info.Bandwidths, func(b numa.BandwidthAllocation) bool { return b.Name == wish.Resource }) {
			return m, fmt.Errorf("bandwidth %s cannot be limited on this node as it is mounted", wish.Resource)
		}
		if now, online := group.Schemata.Bandwidth(wish.Resource, wish.Cache); online && now != wish.Bandwidth {
			m.bandwidths = append(m.bandwidths, wish)
		}
	}
	return m, nil
}

// fill returns the ways of a cache that the group may fill now.
func (m *member) fill(at place) (ways uint64) { return waysOf(m.masks, at) }

// goal returns the ways that the group should fill.
func (m *member) goal(at place) uint64 {
	return waysOf(m.changed(at), at)
}

func waysOf(masks []numa.CacheMask, at place) (ways uint64) {
	for _, mask := range masks {
		if placeOf(mask) == at {
			ways |= mask.Mask
		}
	}
	return ways
}

// changed returns the masks of the group after its wishes for a cache are written.
func (m *member) changed(at place) []numa.CacheMask {
	masks := slices.Clone(m.masks)
	for _, wish := range m.wishes {
		if placeOf(wish) != at {
			continue
		}
		for i := range masks {
			if masks[i].Resource == wish.Resource && masks[i].Cache == wish.Cache {
				masks[i].Mask = wish.Mask
			}
		}
	}
	return masks
}

// pending returns the caches whose masks are not yet as wanted.
func (m *member) pending() (places []place) {
	if m.failed {
		return nil
	}
	for _, wish := range m.wishes {
		if !slices.Contains(m.masks, wish) && !slices.Contains(places, placeOf(wish)) {
			places = append(places, placeOf(wish))
		}
	}
	return places
}

// write notes that the wishes for some caches are written, and returns them.
func (m *member) write(places []place) (written []numa.CacheMask) {
	for _, wish := range m.wishes {
		if slices.Contains(places, placeOf(wish)) && !slices.Contains(m.masks, wish) {
			written = append(written, wish)
		}
	}
	for _, at := range places {
		m.masks = m.changed(at)
	}
	return written
}
