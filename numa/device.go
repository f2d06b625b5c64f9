package numa

// PCIFunction is one function under /sys/bus/pci/devices;
// Documentation/ABI/testing/sysfs-bus-pci.
type PCIFunction struct {
	Address    string // as the kernel prints it: 0000:3b:00.0, with a domain of four or more hexadecimal digits
	Kind       FunctionKind
	Class      *uint32 // base class, subclass and programming interface, 24 bits
	Vendor     *uint16
	Device     *uint16
	Driver     string   // "" if none is bound
	Zone       *int     // id of the zone that it is local to; nil if unknown
	Root       string   // the PCIe root complex above it, such as pci0000:00; "" if unknown
	Parent     string   // address of the bridge above it; "" if it is on a root bus, or if unknown
	PhysFn     string   // address of its physical function; "" if it is not a virtual function
	VirtFns    []string // addresses of its virtual functions, in order of their number
	TotalVFs   *int     // how many virtual functions it can have; nil if it is not an SR-IOV device
	Link       *Link    // nil if the kernel describes no PCIe link
	IOMMU      *int     // its IOMMU group
	Net        []string // network interfaces
	Infiniband []string
	NVMe       []string // NVMe controllers
	DRM        []string // card<N>, renderD<N>
	VFIO       []string // vfio<N> character devices

	// Facts from the bound driver; "", nil or empty if it does not provide them.
	Model        string   // of a GPU or an NVMe drive, as the vendor names it
	UUID         string   // of a GPU; it stays the same if the GPU moves to another machine
	Architecture string   // of an AMD GPU that the compute driver lists, such as gfx942
	MemoryBytes  *uint64  // of a GPU: its own memory
	Namespaces   []string // of an NVMe drive: block devices such as nvme0n1
	LinkMbps     *int     // speed of the fastest of its network interfaces that are up

	// Facts about a GPU from NVIDIA's library, if there is a [GPUReport].
	ComputeCapability string // such as 9.0
	MIG               *bool  // whether MIG mode is on now; nil if the GPU has no MIG, or if unknown
	NVLink            string // lowest address of the GPUs that NVLinks connect, itself included; "" without NVLinks to GPUs

	// Known faults of the function.
	Fault       string // what NVIDIA's library reports about a GPU; "" if no fault is known
	FatalErrors uint64 // its own, or those it received as a root port, since the kernel found it; 0 also if not counted
	Dead        bool   // the NVMe driver has given up its controller
}

// FunctionKind says what a function is for, by its class.
type FunctionKind string

// The kinds of functions.
const (
	GPUFunction    FunctionKind = "gpu"    // display controllers and 3D accelerators, class 03, but for consoles; processing accelerators, 12
	NICFunction    FunctionKind = "nic"    // network controllers, class 02; InfiniBand, 0c06
	NVMeFunction   FunctionKind = "nvme"   // class 0108
	BridgeFunction FunctionKind = "bridge" // class 06
	OtherFunction  FunctionKind = "pci"
)

// Link is a function's PCIe link as it is trained now and as it could be.
type Link struct {
	SpeedGTps    *float64 // giga-transfers a second of one lane, such as 16
	Width        *int     // lanes
	MaxSpeedGTps *float64
	MaxWidth     *int
}
