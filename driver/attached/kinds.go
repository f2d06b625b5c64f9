package attached

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Kind says what a device is for. It is the value of the attribute kind, and the first
// part of the name of the device.
type Kind string

// The kinds of devices, in the order in which they are published.
const (
	GPU   Kind = "gpu"  // display controllers and processing accelerators
	NIC   Kind = "nic"  // network controllers, including InfiniBand
	NVMe  Kind = "nvme" // NVMe drives
	Other Kind = "pci"  // everything else except bridges
)

func kinds() []Kind { return []Kind{GPU, NIC, NVMe, Other} }

// kindOf decides by the class, with one exception. VGA-compatible display controllers
// are GPUs only if they come from one of three vendors. The others are consoles of
// management controllers and virtual machines, which have the same class.
func kindOf(f *numa.PCIFunction) Kind {
	const vga = 0x0300
	const amd, nvidia, intel = 0x1002, 0x10de, 0x8086
	switch f.Kind {
	case numa.GPUFunction:
		if *f.Class>>8 == vga && !slices.Contains([]uint16{amd, nvidia, intel}, *f.Vendor) {
			return Other
		}
		return GPU
	case numa.NICFunction:
		return NIC
	case numa.NVMeFunction:
		return NVMe
	}
	return Other
}
