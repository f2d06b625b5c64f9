package attached

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pciname"
)

// function is a PCI function, with facts that come from the rest of the machine or from
// the PCI ID database.
type function struct {
	*numa.PCIFunction
	kind       string
	socket     *int
	vendorName string
	product    string
	speedMTps  *int // maximum speed of a lane of the PCIe link
	width      *int // maximum number of lanes of the PCIe link
}

// newFunction leaves out bridges, which no claim can have, and functions whose class,
// vendor or device ID is unknown.
func newFunction(machine numa.Machine, read *numa.PCIFunction) (f function, ok bool) {
	if read.Kind == numa.BridgeFunction || read.Class == nil || read.Vendor == nil || read.Device == nil {
		return function{}, false
	}
	f = function{PCIFunction: read, kind: string(read.Kind)}
	vendorName, product := pciname.Lookup(*read.Vendor, *read.Device)
	f.vendorName = cmp.Or(vendorName, fmt.Sprintf("%04x", *read.Vendor))
	f.product = cmp.Or(product, fmt.Sprintf("%04x", *read.Device))
	if read.Zone != nil {
		if zone, known := machine.Zone(*read.Zone); known && len(zone.Sockets) == 1 {
			f.socket = &zone.Sockets[0]
		}
	}
	f.speedMTps, f.width = link(machine, read)
	return f, true
}

// link returns the maximum speed and width that both the function and the bridge above
// it support. It ignores the current speed, because an idle GPU trains its link down. A
// virtual function has the link of its physical function.
func link(machine numa.Machine, f *numa.PCIFunction) (speedMTps, width *int) {
	if f.PhysFn != "" {
		if physical := find(machine, f.PhysFn); physical != nil {
			f = physical
		}
	}
	if f.Link == nil {
		return nil, nil
	}
	ends := []*numa.Link{f.Link}
	if bridge := find(machine, f.Parent); bridge != nil && bridge.Link != nil {
		ends = append(ends, bridge.Link)
	}
	for _, end := range ends {
		if end.MaxSpeedGTps != nil {
			speedMTps = lower(speedMTps, int(*end.MaxSpeedGTps*1000))
		}
		if end.MaxWidth != nil {
			width = lower(width, *end.MaxWidth)
		}
	}
	return speedMTps, width
}

func lower(known *int, other int) *int {
	if known == nil {
		return &other
	}
	return new(min(*known, other))
}

func find(machine numa.Machine, address string) *numa.PCIFunction {
	i := slices.IndexFunc(machine.PCI, func(f numa.PCIFunction) bool { return f.Address == address })
	if i < 0 {
		return nil
	}
	return &machine.PCI[i]
}
