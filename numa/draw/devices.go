package draw

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// Addresses are listed for at most this many functions that are not a GPU, NIC or NVMe
// drive, and for at most this many virtual functions.
const (
	namedOthers  = 6
	namedVirtual = 4
)

// Names returns the names that a PCI ID database has for a vendor and its product, or
// "" for a name that it does not have.
type Names func(vendor, device uint16) (vendorName, product string)

// function is a PCI function with the virtual functions that are drawn with it.
type function struct {
	*numa.PCIFunction
	virtual []string // addresses
}

// functionsByZone groups the functions by zone. unknown are the functions without a known
// zone. A virtual function is part of its physical function if both are in the same zone.
func functionsByZone(m numa.Machine) (byZone map[int][]function, unknown []function) {
	zoneOf := func(f *numa.PCIFunction) int {
		if f.Zone != nil {
			if zone, ok := m.Zone(*f.Zone); ok {
				return zone.ID
			}
		}
		return -1
	}
	physical := map[string]int{} // zone by address
	for i := range m.PCI {
		if m.PCI[i].PhysFn == "" {
			physical[m.PCI[i].Address] = zoneOf(&m.PCI[i])
		}
	}
	virtual := map[string][]string{}
	byZone = map[int][]function{}
	for i := range m.PCI {
		f := &m.PCI[i]
		zone := zoneOf(f)
		if physicalZone, ok := physical[f.PhysFn]; ok && physicalZone == zone {
			virtual[f.PhysFn] = append(virtual[f.PhysFn], f.Address)
			continue
		}
		byZone[zone] = append(byZone[zone], function{PCIFunction: f})
	}
	for _, functions := range byZone {
		for i := range functions {
			functions[i].virtual = virtual[functions[i].Address]
		}
	}
	return byZone, byZone[-1]
}

// deviceParts returns a line for each function and for its name, one line for all
// bridges, and one for all other functions.
func (s *scene) deviceParts(functions []function) (parts []canvas.Part) {
	others := map[numa.FunctionKind][]string{}
	for i := range functions {
		f := &functions[i]
		if f.Kind == numa.BridgeFunction || f.Kind == numa.OtherFunction {
			others[f.Kind] = append(others[f.Kind], f.Address)
			continue
		}
		parts = append(parts, f.line())
		if name := s.nameOf(f); name != "" {
			p := canvas.Paragraph{Indent: 4, Words: canvas.Words(name, canvas.Muted)}
			p.Words[0].Text = "  " + p.Words[0].Text
			parts = append(parts, p)
		}
		if len(f.virtual) > 0 {
			parts = append(parts, s.virtualLine(f))
		}
	}
	for _, kind := range []struct {
		kind numa.FunctionKind
		noun string
	}{{numa.OtherFunction, "other function"}, {numa.BridgeFunction, "bridge"}} {
		if addresses := others[kind.kind]; len(addresses) > 0 {
			parts = append(parts, s.addressLine(canvas.Count(len(addresses), kind.noun), addresses))
		}
	}
	return parts
}

// line returns a line such as "nic 0000:3b:00.0 15b3:101e mlx5_core eth0 mlx5_0".
func (f *function) line() canvas.Part {
	p := canvas.Paragraph{Indent: 2, Words: canvas.Words(string(f.Kind), canvas.DeviceText)}
	p.Words = append(p.Words, canvas.Words(f.Address, canvas.Plain)...)
	if f.Vendor != nil && f.Device != nil {
		p.Words = append(p.Words, canvas.Words(fmt.Sprintf("%04x:%04x", *f.Vendor, *f.Device), canvas.Muted)...)
	}
	p.Words = append(p.Words, canvas.Words(f.Driver, canvas.Muted)...)
	for _, names := range [][]string{f.Net, f.Infiniband, f.NVMe, f.DRM, f.VFIO} {
		for _, name := range names {
			p.Words = append(p.Words, canvas.Words(name, canvas.Plain)...)
		}
	}
	return p
}

// nameOf returns a name such as "Intel Corporation 82574L Gigabit Network Connection",
// or "" if the name is not known.
func (s *scene) nameOf(f *function) string {
	if s.names == nil || f.Vendor == nil || f.Device == nil {
		return ""
	}
	vendor, product := s.names(*f.Vendor, *f.Device)
	return strings.Join(strings.Fields(vendor+" "+product), " ")
}

func (s *scene) virtualLine(f *function) canvas.Part {
	p := canvas.Paragraph{Indent: 4, Words: canvas.Words(canvas.Count(len(f.virtual), "VF"), canvas.Muted)}
	p.Words[0].Text = "  " + p.Words[0].Text
	if s.detail != everyCore {
		return p
	}
	p.Words[len(p.Words)-1].Text += ":"
	if len(f.virtual) > namedVirtual {
		p.Words = append(p.Words, canvas.Words(f.virtual[0]+" to "+f.virtual[len(f.virtual)-1], canvas.Muted)...)
		return p
	}
	for _, address := range f.virtual {
		p.Words = append(p.Words, canvas.Words(address, canvas.Muted)...)
	}
	return p
}

func (s *scene) addressLine(heading string, addresses []string) canvas.Part {
	p := canvas.Paragraph{Indent: 2, Words: canvas.Words(heading, canvas.Muted)}
	if len(addresses) > namedOthers || s.detail != everyCore {
		return p
	}
	p.Words[len(p.Words)-1].Text += ":"
	for _, address := range addresses {
		p.Words = append(p.Words, canvas.Words(address, canvas.Muted)...)
	}
	return p
}
