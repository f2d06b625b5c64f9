package attached

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// kindOf returns the kind of the device, which is the first part of its name. It decides by
// the class, with one exception. VGA-compatible display controllers are GPUs only if they
// come from one of three vendors. The others are consoles of management controllers and
// virtual machines, which have the same class.
func kindOf(f *numa.PCIFunction) string {
	const vga = 0x0300
	const amd, nvidia, intel = 0x1002, 0x10de, 0x8086
	if f.Kind == numa.GPUFunction && *f.Class>>8 == vga && !slices.Contains([]uint16{amd, nvidia, intel}, *f.Vendor) {
		return deviceclasses.KindPCI
	}
	return string(f.Kind)
}
