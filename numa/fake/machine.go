// Package fake generates machines. From a declaration of sockets, zones, memory and
// devices it makes the files that a Linux kernel on such a machine shows under /sys and
// /proc. Package numa can read them, and so can any program that accepts another root.
// The tests compare the files with those of a real kernel. The package reads no machine,
// does not start from a recorded one, and writes only below the folder that it is given.
//
// It is larger than other packages because much of it is presets: declarations of
// machines on the market.
package fake

// Machine declares a machine as Linux 6.12 would describe it. The zero value is one CPU
// in one zone without memory. A count of 0 means 1 unless its comment says something
// else. The counts apply to every socket. A part of a socket is a run of consecutive
// cores: with 2 zones and 8 L3s per socket, each zone has 4 of the L3s.
type Machine struct {
	Make           Make
	Sockets        int
	DiesPerSocket  int // must divide CoresPerSocket, as must the next two
	ZonesPerSocket int // SNC on Intel, NPS on AMD
	L3sPerSocket   int
	CoresPerSocket int // on a hybrid: the performance cores
	Threads        int // per core, 1 or 2; on a hybrid: per performance core
	Hybrid         *Hybrid
	Numbering      Numbering

	// Lists of CPUs as the kernel writes them (0-3,8). An absent CPU is possible but
	// not plugged in. An offline CPU is plugged in but switched off. On x86, CPU 0 must
	// be online.
	Absent, Offline, Isolated, NoHZFull string

	MemoryBytes    uint64         // MemTotal of each zone with CPUs, in whole pages; 0, or at least MinMemoryBytes
	ZoneMemory     map[int]uint64 // MemTotal of the zones with CPUs that have another amount, by id
	PageBytes      uint64         // 0 means 4096
	Hugepages      []Hugepages    // in each zone with CPUs; page sizes of the Make that are not listed get empty pools
	SideCacheBytes uint64         // a cache in front of the memory of each zone with CPUs; 0 means none
	Performance    *Performance   // of each zone with CPUs; nil means that the firmware says nothing

	ZoneIDs       []int // of the zones with CPUs, ascending; nil means 0, 1, 2, …
	ExtraZones    []Zone
	PossibleZones int     // the kernel can have this many; 0 means the highest zone id plus 1
	Distances     [][]int // between all zones in order of their ids; nil means by socket
	NoNUMA        bool    // a kernel without NUMA support: no sys/devices/system/node, one zone at most

	MaxMHz, BaseMHz int // MaxMHz 0 means no frequencies, as in a virtual machine; only Intel shows BaseMHz

	PCI     []Function
	Drivers []string           // kernel drivers that are loaded, in addition to those that are bound
	Bound   map[string]Binding // bindings that replace the declared drivers, by address
	IOMMU   bool               // each function is in an IOMMU group of its own
	Resctrl *Resctrl

	// Full adds files that only other programs read, such as lstopo: masks in addition
	// to lists, and more about every cache.
	Full bool
}

// MinMemoryBytes is the smallest amount of memory that a zone with memory can have.
const MinMemoryBytes = 64 << 20

// Make is the kind of processor. It decides which files exist, the ids, the sizes of
// caches and the PCI ids of root ports.
type Make int

// The makes. Arm has no die ids and no cache ids; AMD has no cluster ids.
const (
	Intel Make = iota
	AMD
	Arm
)

// Numbering is the order in which the firmware lists CPUs. It decides the ids of the
// CPUs.
type Numbering int

// The numberings. The examples show the CPU ids of 2 sockets with 2 cores each and 2
// threads per core.
const (
	Blocks      Numbering = iota // sockets one after the other, then all siblings: {0,4 1,5} {2,6 3,7}
	Interleaved                  // sockets in turn, then all siblings: {0,4 2,6} {1,5 3,7}
	Adjacent                     // siblings side by side: {0,1 2,3} {4,5 6,7}
)

// Hybrid is what a hybrid Intel laptop has in addition to performance cores: cores with
// one thread each, four of them with a common L2.
type Hybrid struct {
	Efficient       int // 0 means none
	LowPower        int // the same, but outside the L3; 0 means none
	EfficientMaxMHz int
}

// Hugepages is a pool of each zone. FreePages ≤ Pages.
type Hugepages struct {
	PageBytes        uint64
	Pages, FreePages uint64
}

// Zone is a zone without CPUs.
type Zone struct {
	ID          int
	Kind        ZoneKind
	MemoryBytes uint64 // for Memory, CXL and GPU only
	Near        int    // id of the zone whose CPUs reach it best
	Tier        int    // N of memory_tier<N>; 0 means 4, the tier of ordinary memory
	Performance *Performance
	GPU         string // for the kind GPU: address of the function whose memory it is
}

// ZoneKind says what a zone without CPUs is.
type ZoneKind int

// The kinds of zones without CPUs.
const (
	Memory    ZoneKind = iota // such as high-bandwidth memory next to the processor
	CXL                       // a CXL region that dax/kmem made ordinary memory
	GPU                       // memory of an NVIDIA GPU that is coherent with the CPUs
	Initiator                 // a generic initiator without memory, such as an unused slice of a GPU
	Empty                     // nothing: a zone for memory that is not plugged in
)

// Performance is what the HMAT says about access to the memory of a zone from the CPUs
// near it.
type Performance struct {
	ReadMiBps, WriteMiBps uint64
	ReadNs, WriteNs       uint64
}

// Resctrl is what a mounted resctrl filesystem offers.
type Resctrl struct {
	CLOSIDs       int    // largest number of groups, for L3 and MB
	Ways          int    // bits of an L3 mask, at most 32
	ShareableMask uint64 // bits that devices also use
	Sparse        bool   // masks need not be contiguous

	// The smallest share of memory bandwidth and the step, in percent on Intel, in 1/8
	// GB/s on AMD. MinBandwidth 0 means that bandwidth cannot be throttled.
	MinBandwidth, BandwidthStep int

	RMIDs    int // largest number of groups that can be monitored; 0 means none
	Features []string
}
