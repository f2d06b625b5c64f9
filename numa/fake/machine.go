// Package fake generates machines. A declaration of sockets, zones, memory and devices becomes the files that a Linux
// kernel shows of such a machine under /sys and /proc, to be read by package numa or by any program that takes another
// root. Its tests hold what it writes against a real kernel. It reads no machine, starts from no recorded one, and
// writes nowhere but below the folder it is given.
//
// Much of it is presets: declarations of machines that are sold.
package fake

// Machine declares a machine as Linux 6.12 would describe it. The zero value is one CPU in one zone without memory;
// a count of 0 means 1 unless its comment says something else. Counts are equal in every socket, and what is smaller
// than a socket is a run of consecutive cores: with 2 zones and 8 L3s a socket, each zone has 4 of the L3s.
type Machine struct {
	Make           Make
	Sockets        int
	DiesPerSocket  int // must divide CoresPerSocket, as the next two
	ZonesPerSocket int // SNC on Intel, NPS on AMD
	L3sPerSocket   int
	CoresPerSocket int // of a hybrid: the performance cores
	Threads        int // a core, 1 or 2; of a hybrid: a performance core
	Hybrid         *Hybrid
	Numbering      Numbering

	// Lists of CPUs as the kernel writes them (0-3,8). An absent CPU is possible and not plugged in, an offline one is
	// plugged in and switched off; x86 cannot do without CPU 0.
	Absent, Offline, Isolated, NoHZFull string

	MemoryBytes    uint64         // MemTotal of each zone with CPUs, in whole pages; at least MinMemoryBytes, or 0
	ZoneMemory     map[int]uint64 // the same of the zones that have another amount, by id
	PageBytes      uint64         // 0: 4096
	Hugepages      []Hugepages    // in each zone with CPUs; sizes of the Make that are not listed have empty pools
	SideCacheBytes uint64         // a cache in front of the memory of each zone with CPUs; 0: none
	Performance    *Performance   // of each zone with CPUs; nil: the firmware says nothing

	ZoneIDs       []int // of the zones with CPUs, ascending; nil: 0, 1, 2, …
	ExtraZones    []Zone
	PossibleZones int     // the kernel can have this many; 0: no more than there are
	Distances     [][]int // between all zones in order of their ids; nil: by socket
	NoNUMA        bool    // a kernel without NUMA support: no sys/devices/system/node, one zone at most

	MaxMHz, BaseMHz int // MaxMHz 0: no frequencies, as in a virtual machine; BaseMHz is told by Intel's alone

	PCI     []Function
	Drivers []string           // kernel drivers that are loaded, beside those that are bound
	Bound   map[string]Binding // what somebody has changed of a function, by address
	IOMMU   bool               // each function is a group of its own
	Resctrl *Resctrl

	// Full adds what only other programs read, such as lstopo: masks beside lists, and more of every cache.
	Full bool
}

// MinMemoryBytes is the least memory of a zone that has some.
const MinMemoryBytes = 64 << 20

// Make is the kind of processor. It decides which files there are, ids, the sizes of caches and the ids of root ports.
type Make int

// The makes. Arm has no die ids and no ids of caches; AMD has no ids of clusters.
const (
	Intel Make = iota
	AMD
	Arm
)

// Numbering is the order in which the firmware lists CPUs and hence their ids.
type Numbering int

// The numberings, with the ids of 2 sockets of 2 cores of 2 threads.
const (
	Blocks      Numbering = iota // sockets one after the other, then all siblings: {0,4 1,5} {2,6 3,7}
	Interleaved                  // sockets in turn, then all siblings: {0,4 2,6} {1,5 3,7}
	Adjacent                     // siblings side by side: {0,1 2,3} {4,5 6,7}
)

// Hybrid is what a hybrid Intel laptop has besides performance cores: cores of one thread that share an L2 by fours.
type Hybrid struct {
	Efficient       int // 0: none
	LowPower        int // the same outside the L3; 0: none
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
	Tier        int    // N of memory_tier<N>; 0: 4, that of plain memory
	Performance *Performance
	GPU         string // for the kind GPU: address of the function whose memory it is
}

// ZoneKind says what a zone without CPUs is.
type ZoneKind int

// The kinds of zones without CPUs.
const (
	Memory    ZoneKind = iota // such as high-bandwidth memory beside the processor
	CXL                       // a CXL region that dax/kmem made ordinary memory
	GPU                       // memory of an NVIDIA GPU that is coherent with the CPUs
	Initiator                 // a generic initiator without memory, such as a slice of a GPU not in use
	Empty                     // nothing: a zone for memory that is not plugged in
)

// Performance is what the HMAT says of the access to a zone from the CPUs near to it.
type Performance struct {
	ReadMiBps, WriteMiBps uint64
	ReadNs, WriteNs       uint64
}

// Resctrl is what a mounted resctrl filesystem offers.
type Resctrl struct {
	CLOSIDs       int    // groups there can be, of L3 and MB
	Ways          int    // bits of an L3 mask, at most 32
	ShareableMask uint64 // bits that devices use as well
	Sparse        bool   // masks need not be contiguous

	// Memory bandwidth: least share and step, in percent on Intel, in 1/8 GB/s on AMD. 0: it cannot be throttled.
	MinBandwidth, BandwidthStep int

	RMIDs    int // groups that can be watched; 0: none
	Features []string
}
