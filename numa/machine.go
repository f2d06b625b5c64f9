// Package numa is the machine as Linux describes it under /sys and /proc: zones (one NUMA node each), cores, their
// hardware threads, L3 caches, distances, memory and hugepages. It only reads, through an fs.FS, so a recorded
// machine reads like the real one. What a machine does not say is absent from the result, never guessed. The package
// knows nothing of Kubernetes and does not decide who gets what; its child pick chooses CPUs.
package numa

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Machine is what was read, each list in ascending order of id. Only online zones and CPUs are in it.
//
// Invariants: zones share no CPU; the CPUs of a zone are the disjoint union of the CPUs of its cores; every CPU is
// in Online.
type Machine struct {
	Online cpuset.Set // the CPUs that the kernel runs tasks on
	Zones  []Zone     // exactly one, with id 0, on a kernel without NUMA support
	Cores  []Core     // by zone, then socket, die, id
	L3s    []L3       // empty where no L3 is described
}

// Zone is one online NUMA node, /sys/devices/system/node/node<ID>.
type Zone struct {
	ID             int
	CPUs           cpuset.Set // online ones; empty for a zone of memory only
	Sockets        []int      // of its CPUs, ascending; empty where unknown
	Distances      []Distance // to every online zone, in order of their ids; empty where unknown
	MemoryBytes    uint64     // MemTotal: hugepages included, firmware and kernel image not; 0 where unknown
	WatermarkBytes uint64     // what the kernel keeps free: the "high" marks in /proc/zoneinfo; 0 where unknown
	Hugepages      []Hugepages
	MemoryTier     *int // memory_tiering/memory_tier<N>, lower is faster; nil where the kernel has no tiers
	CoreType       CoreType
}

// Distance is one entry of a zone's SLIT row: 10 is local, 20 is twice as far.
type Distance struct {
	Zone  int
	Value int
}

// Hugepages is one size of a zone's hugetlb pools.
type Hugepages struct {
	PageBytes  uint64
	TotalPages uint64 // pages in the pool now, in use or not
	FreePages  uint64 // not in use; they may still be reserved by a mapping
}

// CoreType says what kind of cores a zone has. It is empty for a zone without CPUs.
type CoreType string

// The kinds of cores. Only a hybrid machine has others than standard ones.
const (
	StandardCores    CoreType = "standard"
	PerformanceCores CoreType = "performance"
	EfficientCores   CoreType = "efficient"
	MixedCores       CoreType = "mixed" // performance and efficient ones in one zone
)

// Core is one physical core with an online CPU. Socket, Die and ID are the kernel's numbers, which repeat: core 0
// exists in every socket, and on some machines several times in one. They are -1, as in the kernel, where unknown.
type Core struct {
	Socket int
	Die    int
	ID     int
	Zone   int        // Zone.ID
	L3     *int       // L3.ID; nil where no L3 is described
	CPUs   cpuset.Set // online siblings (hardware threads), never empty
}

// L3 is one level-3 cache domain.
type L3 struct {
	ID   int        // the kernel's cache id; the lowest CPU of the domain where there is none
	CPUs cpuset.Set // online ones that share the cache
}

// Zone returns the zone with the id; ok is false where the machine has no such zone online.
func (m Machine) Zone(id int) (zone Zone, ok bool) {
	i := slices.IndexFunc(m.Zones, func(z Zone) bool { return z.ID == id })
	if i < 0 {
		return Zone{}, false
	}
	return m.Zones[i], true
}

// ThreadsPerCore returns the largest number of online siblings that a core of the zone has; 0 without CPUs.
func (m Machine) ThreadsPerCore(zone int) int {
	threads := 0
	for _, core := range m.Cores {
		if core.Zone == zone {
			threads = max(threads, core.CPUs.Size())
		}
	}
	return threads
}

// NearestCPUZone returns the zone with CPUs that is nearest to the given one, which may be that zone itself; of
// equally near ones the lowest id. ok is false where no distance tells.
func (m Machine) NearestCPUZone(id int) (nearest Zone, ok bool) {
	zone, ok := m.Zone(id)
	if !ok || !zone.CPUs.IsEmpty() {
		return zone, ok
	}
	best := 0
	for _, distance := range zone.Distances {
		other, online := m.Zone(distance.Zone)
		if online && !other.CPUs.IsEmpty() && (best == 0 || distance.Value < best) {
			nearest, best = other, distance.Value
		}
	}
	return nearest, best != 0
}
