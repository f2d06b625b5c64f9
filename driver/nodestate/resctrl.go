package nodestate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Resctrl is what the kernel says of level-3 caches at one moment: who has which ways, and
// what it counts for claims. It is there only if it was asked for.
type Resctrl struct {
	Caches  []L3       `json:"caches"`            // by id
	Classes *Supply    `json:"classes,omitempty"` // CLOSIDs; missing if the kernel divides nothing
	RMIDs   *Supply    `json:"rmids,omitempty"`   // missing if the kernel counts nothing
	Claims  []ClaimUse `json:"claims"`            // by name of the claim
}

// L3 is a level-3 cache. Ways may be in several groups.
type L3 struct {
	ID      int         `json:"l3"`
	Ways    Mask        `json:"ways"`    // all; 0 if the kernel does not divide the cache
	Devices Mask        `json:"devices"` // ways that devices use, too
	Groups  []GroupWays `json:"groups"`  // os, reserved, groups, infra, shared, and then by name
}

// GroupWays is the ways of a group of resctrl that something uses or may use.
type GroupWays struct {
	Group  string   `json:"group"` // empty for the default group
	Ways   Mask     `json:"ways"`
	Pool   string   `json:"pool,omitempty"`   // os, reserved, groups, infra or shared; empty for groups of one claim, and of other tools
	Claims []string `json:"claims,omitempty"` // namespace/name of those that have the ways
}

// Supply is a number of things that groups use up.
type Supply struct {
	Total int `json:"total"`
	Used  int `json:"used"` // RMIDs that are in limbo do not count
}

// Mask is ways of a cache, one bit each. Its text is as in schemata, such as ff0.
type Mask uint64

// MarshalText implements [encoding.TextMarshaler].
func (m Mask) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(m), 16), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Mask) UnmarshalText(text []byte) error {
	value, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("ways %.80q: want a hexadecimal mask of 64 bits", text)
	}
	*m = Mask(value)
	return nil
}

// ClaimUse is what the kernel counts for CPUs of a claim. A claim has two of them if only
// some of its CPUs are in a class.
type ClaimUse struct {
	Claim

	Group  string     `json:"group,omitempty"`  // folder of resctrl; empty if nothing is counted
	Shared bool       `json:"shared,omitempty"` // other claims are counted in the same group
	Caches []CacheUse `json:"caches,omitempty"` // those of the CPUs, by id
	Why    string     `json:"why,omitempty"`    // why not all is counted
}

// CacheUse is what is counted in one cache. What the kernel does not count now is missing.
// Bytes count from when the claim was prepared, or from when its group was last made.
type CacheUse struct {
	L3 int `json:"l3"`
	Counts
	// Zones are the NUMA nodes of the cache, if the machine counts them by themselves
	// (sub-NUMA clustering) and the kernel counted from 0.
	Zones []ZoneUse `json:"zones,omitempty"`
}

// ZoneUse is what is counted in one NUMA node of a cache.
type ZoneUse struct {
	NUMANode int `json:"numaNode"`
	Counts
}

// Counts are counters.
type Counts struct {
	OccupancyBytes *uint64 `json:"occupancyBytes,omitempty"` // in the cache now
	TotalBytes     *uint64 `json:"totalBytes,omitempty"`     // from and to any memory
	LocalBytes     *uint64 `json:"localBytes,omitempty"`     // from and to the near memory
}

// Counter reads what is counted for a group in one level-3 cache; see
// [numa.ReadCountersOf].
type Counter func(group, monitor string, cache int) (numa.CacheCounters, error)

// ResctrlOf returns what resctrl has of claims. The grants are those of the checkpoint.
func ResctrlOf(state numa.ResctrlState, machine *numa.Machine, grants []ledger.Grant, count Counter) *Resctrl {
	r := &Resctrl{Caches: []L3{}, Claims: []ClaimUse{}}
	r.Classes, r.RMIDs = classes(state), rmids(state)
	for i := range machine.L3s {
		r.Caches = append(r.Caches, cacheOf(state, machine.L3s[i].ID, grants))
	}
	slices.SortFunc(r.Caches, func(a, b L3) int { return cmp.Compare(a.ID, b.ID) })
	for _, grant := range grants {
		r.Claims = append(r.Claims, uses(state, machine, grant, count)...)
	}
	slices.SortStableFunc(r.Claims, func(a, b ClaimUse) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

// classes is nil if there is none but that of the default group.
func classes(state numa.ResctrlState) *Supply {
	total := 0
	count := func(closids int) {
		if total == 0 || closids < total {
			total = closids
		}
	}
	for _, cache := range state.Info.Caches {
		count(cache.CLOSIDs)
	}
	for _, bandwidth := range state.Info.Bandwidths {
		count(bandwidth.CLOSIDs)
	}
	if total == 0 {
		return nil
	}
	return &Supply{total, len(state.Groups)}
}

func rmids(state numa.ResctrlState) *Supply {
	used := len(state.Groups)
	for _, group := range state.Groups {
		used += len(group.Monitors)
	}
	var supply *Supply
	for _, monitor := range state.Info.Monitors {
		if supply == nil || monitor.RMIDs < supply.Total {
			supply = &Supply{monitor.RMIDs, used}
		}
	}
	return supply
}

func cacheOf(state numa.ResctrlState, id int, grants []ledger.Grant) L3 {
	all, devices := caches.AllWays(state.Info)
	l3 := L3{ID: id, Ways: Mask(all), Devices: Mask(devices), Groups: []GroupWays{}}
	for _, group := range state.Groups {
		part := GroupWays{Group: group.Name, Ways: Mask(caches.WaysInUse(group, id)), Pool: caches.PoolOfGroup(group.Name), Claims: claimsOf(grants, group.Name, id)}
		unused := resctrl.IsOurs(group.Name) && part.Pool == "" && len(part.Claims) == 0 // a class that is kept for a claim
		if part.Ways != 0 && !unused {
			l3.Groups = append(l3.Groups, part)
		}
	}
	order := []string{ways.OS, ways.Reserved, ways.Groups, ways.Infra, ways.Shared, ""}
	slices.SortStableFunc(l3.Groups, func(a, b GroupWays) int { return cmp.Compare(slices.Index(order, a.Pool), slices.Index(order, b.Pool)) })
	return l3
}

// claimsOf returns the claims that have a group in a cache.
func claimsOf(grants []ledger.Grant, group string, cache int) (names []string) {
	for _, grant := range grants {
		for _, share := range grant.Shares {
			if c := share.Cache(); c != nil && c.L3 == cache && resctrl.Name(c.Group) == group {
				names = append(names, claimOf(grant).Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func claimOf(grant ledger.Grant) Claim {
	return Claim{string(grant.UID), grant.Namespace + "/" + grant.Name}
}

// uses returns what is counted for a grant: in the groups of its classes, and in its
// monitoring group.
func uses(state numa.ResctrlState, machine *numa.Machine, grant ledger.Grant, count Counter) (list []ClaimUse) {
	for _, share := range grant.Shares {
		c := share.Cache()
		if c == nil {
			continue
		}
		use := ClaimUse{Claim: claimOf(grant), Shared: c.Pool == ways.Shared}
		name := resctrl.Name(c.Group)
		if _, exists := state.Group(name); !exists {
			use.Why = "the kernel has no group " + name
		} else if len(state.Info.Monitors) > 0 {
			use.Group = name
			use.add(c.L3, c.Before, func() (numa.CacheCounters, error) { return count(name, "", c.L3) })
		}
		list = append(list, use)
	}
	monitor := dividing.MonitorOf(grant)
	if monitor.CPUs.IsEmpty() {
		return list
	}
	use := ClaimUse{Claim: claimOf(grant)}
	root, _ := state.Group("")
	at := slices.IndexFunc(root.Monitors, func(g numa.MonitorGroup) bool { return g.Name == monitor.Name })
	if at < 0 {
		use.Why = "it has no monitoring group: the node counts nothing, or the kernel has no counter (RMID) left"
		return append(list, use)
	}
	use.Group = resctrl.MonitorPath(monitor.Name)
	if lost := monitor.CPUs.Intersection(state.Online()).Difference(root.Monitors[at].CPUs); !lost.IsEmpty() {
		use.Why = fmt.Sprintf("CPUs %s are in another group", lost)
	}
	for _, id := range cachesOf(machine, monitor.CPUs) {
		use.add(id, ledger.CountedBytes{}, func() (numa.CacheCounters, error) { return count("", monitor.Name, id) })
	}
	return append(list, use)
}

// add adds what is counted in a cache.
func (u *ClaimUse) add(l3 int, before ledger.CountedBytes, count func() (numa.CacheCounters, error)) {
	counted, err := count()
	if err != nil {
		u.Why = message.OneLine(err.Error())
		return
	}
	use := CacheUse{L3: l3, Counts: counts(counted.Counters, before)}
	for _, zone := range counted.Zones {
		if before == (ledger.CountedBytes{}) { // it is not known what each of them had counted before
			use.Zones = append(use.Zones, ZoneUse{zone.Zone, counts(zone.Counters, before)})
		}
	}
	u.Caches = append(u.Caches, use)
}

func counts(c numa.Counters, before ledger.CountedBytes) Counts {
	return Counts{c.OccupancyBytes, since(c.TotalBytes, before.Total), since(c.LocalBytes, before.Local)}
}

// since returns how much a counter has grown. If it is less than before, the kernel has
// started again.
func since(now *uint64, before uint64) *uint64 {
	if now == nil || *now < before {
		return now
	}
	return new(*now - before)
}

// cachesOf returns the ids of the caches of some CPUs, ascending.
func cachesOf(machine *numa.Machine, cpus cpuset.Set) (ids []int) {
	for i := range machine.L3s {
		if machine.L3s[i].CPUs.Overlaps(cpus) {
			ids = append(ids, machine.L3s[i].ID)
		}
	}
	slices.Sort(ids)
	return ids
}
