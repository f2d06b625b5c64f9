// Package numa reads a machine as Linux describes it under /sys and /proc: zones (one
// NUMA node each), cores, their hardware threads, caches, distances, memory, hugepages,
// PCI functions and what resctrl offers. It only reads, through an fs.FS, so a recorded
// machine reads like a real one. A fact that a machine does not tell is absent from the
// result, never guessed. The package knows nothing about Kubernetes and does not decide
// who gets what. Its child package pick chooses CPUs.
//
// It is larger than other packages because it has a small reader for each part of sysfs.
// Together the readers fill one [Machine].
package numa

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Machine is the result of [Read]. Each list is in ascending order of id. Machine has
// the online zones, and the cores and caches with an online CPU. A nil pointer means
// that the kernel does not tell the fact.
//
// The kernel lists a CPU for several zones if it divides the memory of a NUMA node into
// emulated ones (numa=fake=), and some firmware does so, too. Then the lowest of these zones
// has the CPU.
//
// Invariants: zones share no CPU; the CPUs of a zone are the disjoint union of the CPUs
// of its cores; every CPU of a zone, core or cache is in Online, and Online ⊆ Present.
type Machine struct {
	Present  cpuset.Set  // the CPUs that are plugged in, cpu/present; without that file, the CPUs that have a folder
	Online   cpuset.Set  // the CPUs that the kernel runs tasks on
	Isolated *cpuset.Set // the CPUs of isolcpus=, which the scheduler balances no task to, cpu/isolated
	NoHZFull *cpuset.Set // the CPUs of nohz_full=, which have no tick while they run one task, cpu/nohz_full
	Zones    []Zone      // exactly one, with id 0, on a kernel without NUMA support
	Possible cpuset.Set  // the ids that zones can have, node/possible; without that file, those of Zones
	Cores    []Core      // by zone, then socket, die, id; unknown ids first
	L2s      []Cache     // empty if the kernel describes no L2
	L3s      []Cache     // empty if the kernel describes no L3
	PCI      []PCIFunction
	Resctrl  *Resctrl  // nil if the kernel has no resctrl filesystem, or it is not mounted
	Platform *Platform // nil if nobody has read it: Read does not
}

// Zone is one online NUMA node, /sys/devices/system/node/node<ID>.
type Zone struct {
	ID          int
	Kind        ZoneKind
	CPUs        cpuset.Set // online CPUs; empty for a zone with memory only
	Sockets     []int      // of its CPUs, ascending; empty if unknown
	Distances   []Distance // to every online zone, in order of their ids; empty if unknown
	Nearest     *int       // id of the nearest zone with CPUs, its own id if it has CPUs; nil if unknown
	CPUsIn      *int       // id of the zone that has CPUs which the kernel lists for this zone, too; nil if there is none
	CoreType    CoreType
	MemoryBytes *uint64 // MemTotal: it includes hugepages, but not firmware and kernel image
	FreeBytes   *uint64 // MemFree: not used now, not even as a cache
	Watermarks  *Watermarks
	Hugepages   []Hugepages // by size
	MemoryTier  *int        // N of memory_tiering/memory_tier<N>, lower is faster; nil if the kernel has no tiers
	Performance *Performance
	SideCaches  []SideCache // by level
}

// ZoneKind says what a zone is made of.
type ZoneKind string

// The kinds of zones. All but the first have no CPU.
const (
	CPUZone       ZoneKind = "cpu"       // CPUs, nearly always with memory
	MemoryZone    ZoneKind = "memory"    // memory of no known kind
	CXLZone       ZoneKind = "cxl"       // memory of a CXL device
	GPUZone       ZoneKind = "gpu"       // memory of a GPU; the kernel sees it, but no claim may get it
	InitiatorZone ZoneKind = "initiator" // a generic initiator: a device that accesses memory but has none of its own
	EmptyZone     ZoneKind = "empty"     // neither CPUs nor memory
)

// Distance is one entry of a zone's SLIT row: 10 is local, 20 is twice as far.
type Distance struct {
	Zone  int
	Value int
}

// Watermarks are the amounts of memory that the kernel keeps free in a zone:
// /proc/zoneinfo, summed over the kernel's memory zones (DMA, Normal, …) of the node.
// MinBytes ≤ LowBytes ≤ HighBytes.
type Watermarks struct {
	MinBytes  uint64 // below it only the kernel itself allocates
	LowBytes  uint64 // below it kswapd starts to free memory
	HighBytes uint64 // at it kswapd stops
}

// Hugepages is one size of a zone's hugetlb pools.
type Hugepages struct {
	PageBytes    uint64
	TotalPages   uint64  // that the pool keeps, in use or not
	SurplusPages uint64  // that it has besides: they are in use, and it gives them back when they are not
	FreePages    *uint64 // not in use, but a mapping may have reserved them
}

// Performance is what the firmware's HMAT says about access to a zone's memory from the
// nearest CPUs: node<ID>/access1/initiators, else node<ID>/access0/initiators;
// Documentation/admin-guide/mm/numaperf.rst.
type Performance struct {
	ReadBandwidthMiBps  *uint64
	WriteBandwidthMiBps *uint64
	ReadLatencyNs       *uint64
	WriteLatencyNs      *uint64
}

// SideCache is a cache in front of a zone's memory,
// node<ID>/memory_side_cache/index<Level>.
type SideCache struct {
	Level     int // 1 is the nearest to the CPU
	SizeBytes *uint64
	LineBytes *uint64
}

// CoreType is the kind of a core, or of the cores of a zone. It is empty for a zone
// without CPUs.
type CoreType string

// The kinds of cores. Only a hybrid machine has cores that are not standard cores.
const (
	StandardCores    CoreType = "standard"
	PerformanceCores CoreType = "performance"
	EfficientCores   CoreType = "efficient"
	MixedCores       CoreType = "mixed" // performance and efficient cores in one zone; never the type of a core
)

// Core is one physical core with an online CPU. Socket, Die, Cluster and ID are the
// kernel's numbers, which repeat: core 0 exists in every socket, and on some machines
// several times in one. Only sockets are different: if the kernel's numbers repeat, as on
// s390x in each book, they are numbered from 0 in the order of their lowest CPUs.
type Core struct {
	Socket  *int
	Die     *int
	Cluster *int
	ID      *int
	Zone    int  // Zone.ID
	L2      *int // Cache.ID in Machine.L2s; nil if the kernel describes no L2
	L3      *int // Cache.ID in Machine.L3s; nil if the kernel describes no L3
	Type    CoreType
	CPUs    cpuset.Set // online siblings (hardware threads), never empty
}

// Cache is one level-2 or level-3 cache domain.
type Cache struct {
	ID        int        // the kernel's cache id; the domain's lowest CPU if not every cache of the level has a unique id
	CPUs      cpuset.Set // online CPUs that share the cache
	SizeBytes *uint64
}

// Zone returns the zone with the id; ok is false if the machine has no such zone online.
func (m Machine) Zone(id int) (zone Zone, ok bool) {
	i := slices.IndexFunc(m.Zones, func(z Zone) bool { return z.ID == id })
	if i < 0 {
		return Zone{}, false
	}
	return m.Zones[i], true
}

// ThreadsPerCore returns the largest number of online siblings that a core of the zone
// has; 0 without CPUs.
func (m Machine) ThreadsPerCore(zone int) int {
	threads := 0
	for _, core := range m.Cores {
		if core.Zone == zone {
			threads = max(threads, core.CPUs.Size())
		}
	}
	return threads
}
