// Package draw shows a machine: as a document for programs, as a drawing for terminals
// of any width, and as a picture. It writes only to an io.Writer and has no other
// effects. It draws nothing that the machine does not report.
package draw

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// Document describes a machine for programs. Every key is always present. A value is null
// if the kernel does not report it. Sets of CPUs are strings in the kernel's list format.
type Document struct {
	Platform *Platform `json:"platform"` // null if the firmware does not say it, or nobody has asked
	Nodes    []Node    `json:"nodes"`    // online NUMA nodes, sorted by id
	CPUs     []CPU     `json:"cpus"`     // all present CPUs, sorted by id
	Devices  []Device  `json:"devices"`  // PCI functions, sorted by address
}

// Platform is which machine it is, as its firmware says.
type Platform struct {
	Vendor      string `json:"vendor"`
	Product     string `json:"product"`
	BIOSVendor  string `json:"biosVendor"`
	BIOSVersion string `json:"biosVersion"`
	BIOSDate    string `json:"biosDate"`
}

// Node is one NUMA node.
type Node struct {
	ID             int           `json:"id"`
	Kind           numa.ZoneKind `json:"kind"`
	Socket         *int          `json:"socket"`      // null if unknown, or if the node spans several sockets
	CPUs           cpuset.Set    `json:"cpus"`        // online CPUs
	MemoryBytes    *uint64       `json:"memoryBytes"` // including hugepages
	Hugepages      []Hugepages   `json:"hugepages"`   // sorted by size
	Distances      []Distance    `json:"distances"`   // to every node, sorted by id
	NearestCPUNode *int          `json:"nearestCPUNode"`
	CPUsIn         *int          `json:"cpusIn"` // the node that has CPUs which the kernel lists here, too, as with numa=fake
}

// Hugepages is the hugepages of one size on a node.
type Hugepages struct {
	Size  string  `json:"size"` // as in a pod spec: 2Mi, 1Gi
	Total uint64  `json:"total"`
	Free  *uint64 `json:"free"`
}

// Distance is the distance to a node: 10 is local, and 20 is twice as far.
type Distance struct {
	Node     int `json:"node"`
	Distance int `json:"distance"`
}

// CPU is one logical CPU. The kernel does not report where an offline CPU is.
type CPU struct {
	ID       int            `json:"id"`
	Socket   *int           `json:"socket"`
	Die      *int           `json:"die"`
	Core     *int           `json:"core"` // the kernel's number, which is not unique across sockets
	Node     *int           `json:"node"`
	L3       *int           `json:"l3"`
	Siblings *cpuset.Set    `json:"siblings"` // online CPUs of the core, including this CPU
	Type     *numa.CoreType `json:"type"`
	Online   bool           `json:"online"`
	Isolated *bool          `json:"isolated"`
}

// Device is one PCI function.
type Device struct {
	Address  string            `json:"address"`
	Class    *string           `json:"class"`  // 0x and six hexadecimal digits
	Vendor   *string           `json:"vendor"` // 0x and four hexadecimal digits
	Device   *string           `json:"device"` // 0x and four hexadecimal digits
	Driver   *string           `json:"driver"` // null if no driver is bound
	Node     *int              `json:"node"`
	PCIeRoot *string           `json:"pcieRoot"`
	PhysFn   *string           `json:"physfn"` // null if it is not a virtual function
	Kind     numa.FunctionKind `json:"kind"`
}

// Topology returns the document of a machine.
func Topology(m numa.Machine) Document {
	d := Document{Nodes: []Node{}, CPUs: cpus(m), Devices: []Device{}}
	if p := m.Platform; p != nil {
		d.Platform = &Platform{p.Vendor, p.Product, p.BIOSVendor, p.BIOSVersion, p.BIOSDate}
	}
	for i := range m.Zones {
		d.Nodes = append(d.Nodes, node(&m.Zones[i]))
	}
	for i := range m.PCI {
		d.Devices = append(d.Devices, device(&m.PCI[i]))
	}
	return d
}

func node(zone *numa.Zone) Node {
	n := Node{
		ID:             zone.ID,
		Kind:           zone.Kind,
		CPUs:           zone.CPUs,
		MemoryBytes:    zone.MemoryBytes,
		NearestCPUNode: zone.Nearest,
		CPUsIn:         zone.CPUsIn,
	}
	if len(zone.Sockets) == 1 {
		n.Socket = &zone.Sockets[0]
	}
	for _, pool := range zone.Hugepages {
		n.Hugepages = append(n.Hugepages, Hugepages{canvas.PageSize(pool.PageBytes), pool.TotalPages, pool.FreePages})
	}
	for _, distance := range zone.Distances {
		n.Distances = append(n.Distances, Distance{distance.Zone, distance.Value})
	}
	return n
}

func cpus(m numa.Machine) []CPU {
	list := []CPU{}
	for id := range m.Present.Union(m.Online).All() {
		cpu := CPU{ID: id, Online: m.Online.Contains(id)}
		if m.Isolated != nil {
			cpu.Isolated = new(m.Isolated.Contains(id))
		}
		list = append(list, cpu)
	}
	for i := range m.Cores {
		core := &m.Cores[i]
		for id := range core.CPUs.All() {
			at, found := slices.BinarySearchFunc(list, id, func(cpu CPU, id int) int { return cpu.ID - id })
			if !found {
				continue
			}
			cpu := &list[at]
			cpu.Socket, cpu.Die, cpu.Core, cpu.L3 = core.Socket, core.Die, core.ID, core.L3
			cpu.Node, cpu.Siblings, cpu.Type = &core.Zone, &core.CPUs, &core.Type
		}
	}
	return list
}

func device(function *numa.PCIFunction) Device {
	d := Device{
		Address:  function.Address,
		Driver:   known(function.Driver),
		Node:     function.Zone,
		PCIeRoot: known(function.Root),
		PhysFn:   known(function.PhysFn),
		Kind:     function.Kind,
	}
	if function.Class != nil {
		d.Class = new(fmt.Sprintf("0x%06x", *function.Class))
	}
	if function.Vendor != nil {
		d.Vendor = new(fmt.Sprintf("0x%04x", *function.Vendor))
	}
	if function.Device != nil {
		d.Device = new(fmt.Sprintf("0x%04x", *function.Device))
	}
	return d
}

func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
