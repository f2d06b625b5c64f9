// Package attached turns the PCI functions of a machine into devices that claims
// can have for themselves: GPUs, network cards, NVMe drives and others. It
// decides which functions are published, under which names and attributes, in
// which order, and which of them exclude one another. It reads nothing and
// prepares nothing.
package attached

import (
	"cmp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Kind is what a device is for, the value of its attribute kind and the start of
// its name.
type Kind string

// The kinds of devices, in the order in which they are published.
const (
	GPU   Kind = "gpu"  // display controllers and accelerators that compute
	NIC   Kind = "nic"  // network controllers, InfiniBand too
	NVMe  Kind = "nvme" // NVMe drives
	Other Kind = "pci"  // everything else but bridges
)

func kinds() []Kind { return []Kind{GPU, NIC, NVMe, Other} }

// Devices are the functions of the machine that are selected, in the order in
// which the scheduler is to try them: by kind; first those of which nobody knows
// where they are, for a claim that cares cannot have them; virtual functions
// before the physical one that all of them exclude; then by address, so that
// those of one card are used up before those of the next.
func Devices(machine numa.Machine, selection Selection) []resourceapi.Device {
	var selected []device
	if selection.IsEmpty() {
		return nil
	}
	for _, d := range all(machine) {
		if selection.has(d.Device) {
			selected = append(selected, d)
		}
	}
	slices.SortStableFunc(selected, func(a, b device) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.locality, b.locality), cmp.Compare(a.weight, b.weight))
	})
	devices := make([]resourceapi.Device, len(selected))
	for i := range selected {
		devices[i] = selected[i].Device
	}
	return devices
}

// device is one that could be published.
type device struct {
	resourceapi.Device
	order    int // of its kind
	locality int // 0 unknown, 1 known
	weight   int // how many others its allocation excludes
}

// all are the functions of the machine by address.
func all(machine numa.Machine) (devices []device) {
	for i := range machine.PCI {
		f, ok := newFunction(machine, &machine.PCI[i])
		if !ok {
			continue
		}
		d := device{
			Device: resourceapi.Device{Name: name(f.kind, f.Address), Attributes: f.attributes(), Taints: taints(machine, f.PCIFunction)},
			order:  slices.Index(kinds(), f.kind),
			weight: len(f.VirtFns),
		}
		if f.PhysFn != "" {
			d.weight = 1
		}
		if f.Zone != nil {
			d.locality = 1
		}
		devices = append(devices, d)
	}
	return devices
}

// name is a DNS label, which an address is not: gpu-0000-3b-00-0.
func name(kind Kind, address string) string { return string(kind) + "-" + label(address) }

// Parse takes the name of a device apart; ok is false if it is none that Devices
// gives, on whatever machine.
func Parse(deviceName string) (kind Kind, address string, ok bool) {
	text, rest, _ := strings.Cut(deviceName, "-")
	parts := strings.Split(rest, "-")
	if kind = Kind(text); len(parts) != 4 || !slices.Contains(kinds(), kind) {
		return "", "", false
	}
	address = strings.Join(parts[:3], ":") + "." + parts[3]
	return kind, address, numa.IsPCIAddress(address)
}

func label(address string) string { return strings.NewReplacer(":", "-", ".", "-").Replace(address) }
