// Package attached turns the PCI functions of a machine into devices that a claim can
// have for itself: GPUs, network cards, NVMe drives and others. It decides which
// functions are published, under which names and attributes, in which order, and which
// of them exclude each other. It reads nothing and prepares nothing.
package attached

import (
	"cmp"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Devices returns the selected functions of the machine, in the order in which the
// scheduler should try them:
//   - by kind;
//   - functions of unknown locality first, because a claim with a locality constraint
//     cannot have them;
//   - functions that exclude fewer others first: virtual functions before a physical
//     function that has several of them;
//   - by address, so that the virtual functions of one card are used up before those of
//     the next card.
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

// device is a device that can be published.
type device struct {
	resourceapi.Device
	order    int // index of its kind
	locality int // 0 unknown, 1 known
	weight   int // how many other devices its allocation excludes
}

// all returns the functions of the machine that can be devices, by address.
func all(machine numa.Machine) (devices []device) {
	rows := deviceclasses.FunctionAttributes()
	for i := range machine.PCI {
		f, ok := newFunction(machine, &machine.PCI[i])
		if !ok {
			continue
		}
		d := device{
			Device: resourceapi.Device{Name: name(f.kind, f.Address), Attributes: deviceclasses.DeviceAttributes(rows, f.values()), Taints: taints(machine, f.PCIFunction)},
			order:  slices.Index(deviceclasses.FunctionKinds(), f.kind),
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

// name returns the name of a device, such as gpu-0000-3b-00-0. It is a DNS label, which
// an address is not.
func name(kind, address string) string { return kind + "-" + label(address) }

// Parse splits the name of a device into its kind and its address. ok is false if
// Devices does not give this name on any machine.
func Parse(deviceName string) (kind, address string, ok bool) {
	kind, rest, _ := strings.Cut(deviceName, "-")
	parts := strings.Split(rest, "-")
	if len(parts) != 4 || !slices.Contains(deviceclasses.FunctionKinds(), kind) {
		return "", "", false
	}
	address = strings.Join(parts[:3], ":") + "." + parts[3]
	return kind, address, numa.IsPCIAddress(address)
}

func label(address string) string { return strings.NewReplacer(":", "-", ".", "-").Replace(address) }
