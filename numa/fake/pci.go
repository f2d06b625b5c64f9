package fake

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// NoZone is the zone of a function if the firmware gives it none.
const NoZone = -1

// Function declares a PCI function behind a root port of a host bridge, or the port
// itself.
type Function struct {
	Address              string // as the kernel prints it: 0000:3b:00.0; its bus is not 00
	Zone                 int    // id of its zone, or [NoZone]
	HidesZone            bool   // the function says -1, and only the port above it says the zone
	Class                uint32 // base class, subclass and programming interface, 24 bits
	Vendor, Device       uint16
	SubVendor, SubDevice uint16
	Driver               string  // "" if none is bound
	SpeedGTps            float64 // current speed of its link; 0 means that it has no link
	Width                int
	MaxSpeedGTps         float64 // 0 means the current speed
	MaxWidth             int
	Children             []string // <class>/<name>, such as net/eth0, nvme/nvme0, drm/card0, vfio-dev/vfio0

	// Facts from the driver, if it is known which file they would be in.
	Model       string // of an NVIDIA or AMD GPU, or of an NVMe drive
	UUID        string // of an NVIDIA or AMD GPU
	MemoryBytes uint64 // of an AMD or Intel GPU
	GFXTarget   int    // of an AMD GPU: 90402 for gfx942
	Namespaces  int    // number of namespaces of an NVMe drive
	LinkMbps    int    // of each network interface; 0 means that its cable is not plugged in

	VFs, TotalVFs int // number of virtual functions now, and at most
	VFDevice      uint16
	VFDriver      string

	// Port is the root port above the function. If it is nil, the function gets a port
	// in slot 1 of a host bridge of its own. The bus of that host bridge is the one
	// before the function's. All functions of one bus have the same port.
	Port *Function
}

// NVIDIA returns an NVIDIA GPU. Number is its index among the GPUs of the machine.
func NVIDIA(address string, zone, number int) Function {
	return Function{
		Address: address, Zone: zone, Class: 0x030200, Driver: "nvidia", Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de, SubDevice: 0x16c1,
		SpeedGTps: 32, Width: 16, Children: []string{fmt.Sprintf("drm/card%d", number), fmt.Sprintf("drm/renderD%d", 128+number)},
		Model: "NVIDIA H100 80GB HBM3", UUID: fmt.Sprintf("GPU-00000000-0000-4000-8000-%012x", number),
	}
}

// MI300X returns an AMD GPU. Number is its index among the GPUs of the machine.
func MI300X(address string, zone, number int) Function {
	return Function{
		Address: address, Zone: zone, Class: 0x120000, Driver: "amdgpu", Vendor: 0x1002, Device: 0x74a1, SubVendor: 0x1002, SubDevice: 0x74a1,
		SpeedGTps: 32, Width: 16, Children: []string{fmt.Sprintf("drm/card%d", number), fmt.Sprintf("drm/renderD%d", 128+number)},
		Model: "AMD Instinct MI300X OAM", UUID: fmt.Sprintf("d29a3a6f4c1b7e%02x", number), MemoryBytes: 192 * gib, GFXTarget: 90402,
	}
}

// ASPEED returns the console of a server's management controller, behind a bridge that
// has no PCIe link.
func ASPEED(address string, zone int) Function {
	return Function{
		Address: address, Zone: zone, Class: 0x030000, Driver: "ast", Vendor: 0x1a03, Device: 0x2000, SubVendor: 0x1a03, SubDevice: 0x2000,
		Children: []string{"drm/card99"},
	}
}

// ConnectX returns a network card with virtual functions for guests. Number is its
// index among the network cards of the machine.
func ConnectX(address string, zone int, netdev string, number, vfs int) Function {
	return Function{
		Address: address, Zone: zone, Class: 0x020000, Driver: "mlx5_core", Vendor: 0x15b3, Device: 0x101d, SubVendor: 0x15b3, SubDevice: 0x0043,
		SpeedGTps: 16, Width: 16, Children: []string{"net/" + netdev, fmt.Sprintf("infiniband/mlx5_%d", number)},
		VFs: vfs, TotalVFs: max(vfs, 8), VFDevice: 0x101e, VFDriver: "vfio-pci", LinkMbps: 100_000,
	}
}

// NVMe returns an NVMe drive. Number is its index among the drives of the machine.
func NVMe(address string, zone, number int) Function {
	return Function{
		Address: address, Zone: zone, Class: 0x010802, Driver: "nvme", Vendor: 0x144d, Device: 0xa80a, SubVendor: 0x144d, SubDevice: 0xa801,
		SpeedGTps: 8, MaxSpeedGTps: 16, Width: 4, Children: []string{fmt.Sprintf("nvme/nvme%d", number)},
		Model: "SAMSUNG MZVL21T0HCLR-00B00", Namespaces: 1,
	}
}

// Binding is the driver of a function, "" for none, and its driver_override: the only
// driver that the kernel would bind, "" for any.
type Binding struct{ Driver, Override string }

// function is a PCI function of the machine: a declared function, or the port or a
// virtual function of a declared one.
type function struct {
	Function
	bus    int // domain and bus
	path   string
	physFn string   // address
	vfs    []string // addresses
	offset int      // from its own number to that of its first virtual function
	isPort bool
	group  int    // IOMMU group
	only   string // driver_override
}

// rebind gives the function another driver. Package fake knows no devices that the
// other driver creates, and no facts that it tells.
func (f *function) rebind(bound Binding) {
	f.only = bound.Override
	if f.Driver != bound.Driver {
		f.Driver, f.Children, f.Model, f.UUID, f.MemoryBytes, f.GFXTarget, f.Namespaces, f.LinkMbps = bound.Driver, nil, "", "", 0, 0, 0, 0
	}
}

// parseAddress returns the domain with the bus, and the slot with the function, each as
// one number.
func parseAddress(address string) (bus, devfn int, err error) {
	var domain, low, slot, number int
	_, err = fmt.Sscanf(address, "%x:%x:%x.%x", &domain, &low, &slot, &number)
	bus, devfn = domain<<8|low, slot<<3|number
	if err != nil || devfn > 0xff || printAddress(bus, devfn) != address {
		return 0, 0, fmt.Errorf("fake machine: PCI address %q is not like 0000:3b:00.0", address)
	}
	return bus, devfn, nil
}

func printAddress(bus, devfn int) string {
	return fmt.Sprintf("%04x:%02x:%02x.%x", bus>>8, bus&0xff, devfn>>3, devfn&7)
}

// functions returns the declared functions, their ports and their virtual functions, in
// order of address.
func (l *layout) functions() ([]function, error) {
	var list []function
	ports, roots := map[int]function{}, map[int]string{} // ports by the bus below; port addresses by root bus
	for _, declared := range l.PCI {
		bus, _, err := parseAddress(declared.Address)
		if err != nil {
			return nil, err
		}
		port, known := ports[bus]
		if !known {
			if port, err = l.port(declared, bus); err != nil {
				return nil, err
			}
			ports[bus] = port
			list = append(list, port)
			roots[port.bus] = port.Address
		}
		f := function{Function: declared, bus: bus, path: port.path + "/" + declared.Address}
		vfs, err := f.virtual(l.PCI)
		if err != nil {
			return nil, err
		}
		list = append(append(list, f), vfs...)
	}
	slices.SortFunc(list, func(a, b function) int { return cmp.Or(a.bus-b.bus, strings.Compare(a.Address, b.Address)) })
	for i := range list {
		f := &list[i]
		f.group = i
		if bound, changed := l.Bound[f.Address]; changed {
			f.rebind(bound)
		}
		if port, isRoot := roots[f.bus]; isRoot && !f.isPort {
			return nil, fmt.Errorf("fake machine: PCI function %s is on the bus of port %s", f.Address, port)
		}
		if i > 0 && f.Address == list[i-1].Address {
			return nil, fmt.Errorf("fake machine: PCI function %s appears twice", f.Address)
		}
		if _, known := l.zone(f.Zone); f.Zone != NoZone && !known {
			return nil, fmt.Errorf("fake machine: PCI function %s is on zone %d, which the machine does not have", f.Address, f.Zone)
		}
	}
	return list, nil
}

// port returns the root port above a function.
func (l *layout) port(below Function, bus int) (function, error) {
	port := Function{
		Address: printAddress(bus-1, 1<<3), Zone: below.Zone, Class: 0x060400, Vendor: 0x8086, Device: 0x347a, Driver: "pcieport",
		SpeedGTps: below.SpeedGTps, Width: below.Width, MaxSpeedGTps: 32, MaxWidth: 16,
	}
	switch l.Make {
	case AMD:
		port.Vendor, port.Device = 0x1022, 0x1483
	case Arm:
		port.Vendor, port.Device = 0x10de, 0x22b2
	}
	if below.Port != nil {
		port = *below.Port
	}
	root, _, err := parseAddress(port.Address)
	if err != nil {
		return function{}, err
	}
	if bus&0xff == 0 || root>>8 != bus>>8 || root >= bus {
		return function{}, fmt.Errorf("fake machine: PCI function %s is not below port %s", below.Address, port.Address)
	}
	path := fmt.Sprintf("sys/devices/pci%04x:%02x/%s", root>>8, root&0xff, port.Address)
	return function{Function: port, bus: root, path: path, isPort: true}, nil
}

// virtual returns the virtual functions of f, and completes f. Virtual functions are
// numbered after all physical functions of the bus, and after all virtual functions
// that the physical functions before f can have.
func (f *function) virtual(declared []Function) ([]function, error) {
	if f.VFs > f.TotalVFs || f.VFs < 0 {
		return nil, fmt.Errorf("fake machine: PCI function %s has %d virtual functions, allowed are 0-%d", f.Address, f.VFs, f.TotalVFs)
	}
	if f.TotalVFs == 0 {
		return nil, nil
	}
	_, devfn, _ := parseAddress(f.Address)
	first := 0
	for _, other := range declared {
		bus, number, _ := parseAddress(other.Address)
		if bus != f.bus {
			continue
		}
		first = max(first, number+1)
	}
	for _, other := range declared {
		if bus, number, _ := parseAddress(other.Address); bus == f.bus && number < devfn {
			first += other.TotalVFs
		}
	}
	if first+f.TotalVFs > 256 {
		return nil, fmt.Errorf("fake machine: PCI function %s has %d virtual functions, more than its bus has room for", f.Address, f.TotalVFs)
	}
	f.offset = first - devfn
	var list []function
	for n := range f.VFs {
		vf := function{Function: f.Function, bus: f.bus, physFn: f.Address}
		vf.Address = printAddress(f.bus, first+n)
		vf.path = strings.TrimSuffix(f.path, f.Address) + vf.Address
		vf.Device, vf.Driver, vf.Children, vf.TotalVFs, vf.VFs = f.VFDevice, f.VFDriver, nil, 0, 0
		vf.Model, vf.UUID, vf.MemoryBytes, vf.GFXTarget, vf.Namespaces, vf.LinkMbps = "", "", 0, 0, 0, 0
		f.vfs = append(f.vfs, vf.Address)
		list = append(list, vf)
	}
	return list, nil
}
