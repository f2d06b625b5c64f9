package numa

// PCIFunction is one function under /sys/bus/pci/devices; Documentation/ABI/testing/sysfs-bus-pci.
type PCIFunction struct {
	Address    string // as the kernel prints it: 0000:3b:00.0, with a domain of four or more hexadecimal digits
	Kind       FunctionKind
	Class      *uint32 // base class, subclass and programming interface, 24 bits
	Vendor     *uint16
	Device     *uint16
	Driver     string   // "" where none is bound
	Zone       *int     // Zone.ID of its locality; nil where unknown
	Root       string   // the PCIe root complex it hangs under, such as pci0000:00; "" where unknown
	Parent     string   // address of the bridge above it; "" where it is on a root bus, and where unknown
	PhysFn     string   // address of the physical function whose virtual function this is; "" for all others
	VirtFns    []string // addresses of its virtual functions, in order of their number
	TotalVFs   *int     // how many virtual functions it can have; nil where it is no SR-IOV device
	Link       *Link    // nil where no PCIe link is described
	IOMMU      *int     // its IOMMU group
	Net        []string // network interfaces
	Infiniband []string
	NVMe       []string // NVMe controllers
	DRM        []string // card<N>, renderD<N>
	VFIO       []string // vfio<N> character devices

	// What the driver that is bound tells; "", nil or empty where it does not.
	Model        string   // of a GPU or an NVMe drive, as its maker calls it
	UUID         string   // of a GPU: the same on every machine that it is put into
	Architecture string   // of an AMD GPU that computes: gfx942
	MemoryBytes  *uint64  // of a GPU: its own
	Namespaces   []string // of an NVMe drive: block devices such as nvme0n1
	LinkMbps     *int     // of the fastest of its network interfaces that are up

	// What NVIDIA's library tells of a GPU, where it is asked: see [GPUReport].
	ComputeCapability string // 9.0
	MIG               *bool  // whether it is divided now; nil where it cannot be, or nobody knows
	NVLink            string // address of the first of the GPUs that NVLinks connect it with, itself among them; "" for none

	// What is wrong with it, if anything is known.
	Fault       string // what the library of a GPU says
	FatalErrors uint64 // that it has seen, a root port received, since the kernel found it; 0 also where they are not counted
	Dead        bool   // its NVMe driver has given it up
}

// FunctionKind says what a function is for, by its class.
type FunctionKind string

// The kinds of functions.
const (
	GPUFunction    FunctionKind = "gpu"    // display controllers and 3D accelerators, class 03; processing accelerators, 12
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
