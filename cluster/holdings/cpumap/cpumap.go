// Package cpumap says what each CPU of a node is used for: which claim has it, or why no
// claim can get it. It combines where the CPUs are, which only the node itself says, with
// what claims hold. It reads and changes nothing.
package cpumap

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Use says what a CPU is used for.
type Use string

// Uses.
const (
	// Claimed means that a claim has the CPU.
	Claimed Use = "claim"
	// Idle means that no task runs on the CPU: a claim keeps it idle, or it is isolated
	// by a boot parameter and in no claim.
	Idle Use = "idle"
	// Shared means that tasks without a claim run on the CPU, and that a claim can get it.
	Shared Use = "shared"
	// Reserved means that tasks without a claim run on the CPU, and that no claim ever
	// gets it.
	Reserved Use = "reserved"
	// Blocked means that no claim has the CPU, and that none can get it now.
	Blocked Use = "blocked"
)

// Uses returns all uses, in the order of [Cache.Groups].
func Uses() []Use { return []Use{Claimed, Idle, Shared, Reserved, Blocked} }

// CPU is a hardware thread.
type CPU struct {
	ID    int
	Use   Use
	Claim string // namespace/name, if a claim has it or keeps it idle
	Why   string // why it is idle without a claim, or blocked
}

// Cache is the cores of a NUMA node that share a level-3 cache. No core is empty.
type Cache struct {
	L3    *int // nil if the kernel describes no L3
	Cores [][]CPU
}

// NUMANode is the caches of a NUMA node.
type NUMANode struct {
	ID     int64
	Socket *int
	Caches []Cache
}

// Map is all online CPUs of a node. Each CPU is in it once.
type Map struct {
	NUMANodes []NUMANode // by id
	Problems  []string   // contradictions, as sentences
}

// Of returns the map of a node. The state must have a layout.
func Of(node *holdings.Node, state *nodestate.State) Map {
	u := newUses(node, state)
	var m Map
	var seen cpuset.Set
	for _, cache := range state.Layout.Caches {
		at := slices.IndexFunc(m.NUMANodes, func(n NUMANode) bool { return n.ID == int64(cache.NUMANode) })
		if at < 0 {
			at = len(m.NUMANodes)
			m.NUMANodes = append(m.NUMANodes, NUMANode{ID: int64(cache.NUMANode), Socket: cache.Socket})
		}
		drawn := Cache{L3: cache.L3}
		for _, cpus := range cache.Cores {
			var core []CPU
			for id := range cpus.Difference(seen).All() {
				core = append(core, u.cpu(id, &cache))
			}
			if seen = seen.Union(cpus); len(core) > 0 {
				drawn.Cores = append(drawn.Cores, core)
			}
		}
		if len(drawn.Cores) > 0 {
			m.NUMANodes[at].Caches = append(m.NUMANodes[at].Caches, drawn)
		}
	}
	slices.SortStableFunc(m.NUMANodes, func(a, b NUMANode) int { return cmp.Compare(a.ID, b.ID) })
	m.Problems = u.problems(seen)
	return m
}

// Group is the CPUs of a cache with the same use.
type Group struct {
	CPU
	CPUs cpuset.Set
}

// Groups returns the CPUs of the cache by use: claims in the order of their first CPU,
// then the other uses.
func (c Cache) Groups() (groups []Group) {
	for _, core := range c.Cores {
		for _, cpu := range core {
			at := slices.IndexFunc(groups, func(g Group) bool { return g.Use == cpu.Use && g.Claim == cpu.Claim && g.Why == cpu.Why })
			if at < 0 {
				at = len(groups)
				groups = append(groups, Group{CPU: cpu})
			}
			groups[at].CPUs.Insert(cpu.ID)
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return slices.Index(Uses(), a.Use) - slices.Index(Uses(), b.Use) })
	return groups
}

// uses knows what decides about the use of a CPU.
type uses struct {
	state    *nodestate.State
	reserved cpuset.Set
	claims   []holder // in the order of the devices
	blocked  []holder // what else has CPUs, and why
	zones    []zone
}

// holder is a claim that has CPUs, or another reason why they are not free.
type holder struct {
	name       string // of the claim, or why its CPUs are blocked
	cpus, idle cpuset.Set
}

// zone is a published zone, and the NUMA node for which it is published, if there is one.
type zone struct {
	*holdings.Device
	numaNode *int64
}

func newUses(node *holdings.Node, state *nodestate.State) *uses {
	u := &uses{state: state}
	if state.Layout.Reserved != nil {
		u.reserved = *state.Layout.Reserved
	}
	for _, place := range node.View().Places {
		u.addDevices(place.Devices, place.NUMANode)
	}
	for _, grant := range state.Checkpoint.Grants {
		name := grant.Namespace + "/" + grant.Name
		for _, share := range grant.Shares {
			if cpus := share.CPUs(); !cpus.IsEmpty() && find(u.claims, name) < 0 {
				u.blocked = append(u.blocked, holder{name: "the checkpoint of the node has it for claim " + name + ", which holds nothing here", cpus: cpus})
			}
		}
	}
	for _, partition := range state.Partitions {
		ofClaim := slices.ContainsFunc(state.Pins, func(p nodestate.Pin) bool { return p.Cgroup == partition.Cgroup && len(p.Claims) > 0 })
		if !ofClaim {
			u.blocked = append(u.blocked, holder{name: "it is in the cpuset partition of cgroup " + partition.Cgroup, cpus: partition.CPUs})
		}
	}
	return u
}

func (u *uses) addDevices(devices []holdings.Device, numaNode *int64) {
	for i := range devices {
		device := &devices[i]
		if device.Zone && device.State != holdings.StateUnpublished {
			u.zones = append(u.zones, zone{device, numaNode})
		}
		for _, share := range device.Shares {
			if device.Zone && !share.Admin {
				u.addShare(share)
			}
		}
	}
}

// addShare adds the CPUs of a share to those of its claim. Before the driver has written
// the status of the claim, they are those of the checkpoint.
func (u *uses) addShare(share holdings.Share) {
	at := find(u.claims, share.Claim)
	if at < 0 {
		at = len(u.claims)
		u.claims = append(u.claims, holder{name: share.Claim})
	}
	claim := &u.claims[at]
	if share.CPUs != nil {
		claim.cpus, claim.idle = claim.cpus.Union(*share.CPUs), claim.idle.Union(share.IdleCPUs)
		return
	}
	for _, grant := range u.state.Checkpoint.Grants {
		for _, recorded := range grant.Shares {
			if grant.Namespace+"/"+grant.Name == share.Claim && recorded.Device == share.Device && recorded.Request == share.Request {
				claim.cpus = claim.cpus.Union(recorded.CPUs())
			}
		}
	}
}

func find(list []holder, name string) int {
	return slices.IndexFunc(list, func(h holder) bool { return h.name == name })
}

// holderOf returns the first of a list that has the CPU, or nil.
func holderOf(list []holder, id int) *holder {
	for i := range list {
		if list[i].cpus.Contains(id) {
			return &list[i]
		}
	}
	return nil
}

// cpu returns what a CPU of a cache is used for.
func (u *uses) cpu(id int, cache *nodestate.Cache) CPU {
	cpu := CPU{ID: id}
	if claim := holderOf(u.claims, id); claim != nil {
		cpu.Use, cpu.Claim = Claimed, claim.name
		if claim.idle.Contains(id) {
			cpu.Use = Idle
		}
		return cpu
	}
	isolated := u.state.Layout.Isolated.Contains(id)
	if u.reserved.Contains(id) {
		cpu.Use = Reserved
	} else if other := holderOf(u.blocked, id); other != nil {
		cpu.Use, cpu.Why = Blocked, other.name
	} else if why := u.whyBlocked(cache, isolated); why != "" {
		cpu.Use, cpu.Why = Blocked, why
	} else if isolated {
		cpu.Use, cpu.Why = Idle, "it is isolated by the boot parameter isolcpus= and in no claim"
	} else {
		cpu.Use = Shared
	}
	return cpu
}

// whyBlocked returns why no claim can get a free CPU of a cache from its zone, or "".
func (u *uses) whyBlocked(cache *nodestate.Cache, isolated bool) string {
	for _, zone := range u.zones {
		if !zone.has(cache, isolated) {
			continue
		}
		if zone.State == holdings.StateBlocked {
			return "device " + zone.Name + " cannot be allocated: " + zone.Reason
		}
		if at := slices.IndexFunc(zone.Taints, holdings.Taint.Acts); at >= 0 {
			return "device " + zone.Name + " is tainted: " + zone.Taints[at].String()
		}
		return ""
	}
	return "no device of the node has it"
}

// has reports whether the zone has CPUs of a cache: each attribute that it has must be
// that of the cache.
func (z zone) has(cache *nodestate.Cache, isolated bool) bool {
	kind, _ := z.Attribute(deviceclasses.AttributeKind)
	if (kind == deviceclasses.KindIsolated) != isolated || z.numaNode != nil && *z.numaNode != int64(cache.NUMANode) {
		return false
	}
	equal := func(text string, known bool, id *int) bool { return !known || id != nil && text == strconv.Itoa(*id) }
	l3, isL3 := z.Attribute(deviceclasses.AttributeL3)
	socket, isSocket := z.Attribute(deviceclasses.AttributeSocket)
	return equal(l3, isL3, cache.L3) && equal(socket, isSocket, cache.Socket)
}

// problems returns the contradictions. online are the CPUs of the layout.
func (u *uses) problems(online cpuset.Set) (list []string) {
	for i, claim := range u.claims {
		if gone := claim.cpus.Difference(online); !gone.IsEmpty() {
			list = append(list, fmt.Sprintf("claim %s has CPUs %s, which are not online", claim.name, gone))
		}
		for _, other := range u.claims[:i] {
			if both := claim.cpus.Intersection(other.cpus); !both.IsEmpty() {
				list = append(list, fmt.Sprintf("claims %s and %s both have CPUs %s", other.name, claim.name, both))
			}
		}
	}
	return list
}
