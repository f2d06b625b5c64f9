package draw

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Nearness says what two places of a machine have in common, from the nearest to the
// farthest.
type Nearness string

// The values of Nearness.
const (
	SamePlace   Nearness = "-"      // both are the same device
	SameBridge  Nearness = "bridge" // a PCIe bridge is above both
	SameRoot    Nearness = "root"   // the same PCIe root complex
	SameNode    Nearness = "node"   // the same NUMA node
	SameSocket  Nearness = "socket" // the same socket
	OtherSocket Nearness = "far"
	Unknown     Nearness = "?" // the kernel does not say where one of them is
)

// Meaning returns the sentence that explains the word.
func (n Nearness) Meaning() string {
	return map[Nearness]string{
		SameBridge:  "a PCIe bridge is above both: a switch, or the port of a card",
		SameRoot:    "both are under the same PCIe root complex",
		SameNode:    "both are on the same NUMA node",
		SameSocket:  "both are on the same socket",
		OtherSocket: "they are on different sockets",
		Unknown:     "the kernel does not say where one of them is",
	}[n]
}

// Nearnesses returns all words but SamePlace, the nearest first.
func Nearnesses() []Nearness {
	return []Nearness{SameBridge, SameRoot, SameNode, SameSocket, OtherSocket, Unknown}
}

// Matrix says how near the devices of a machine are to each other and to its NUMA nodes.
type Matrix struct {
	Columns []string    `json:"columns"` // names of rows: the GPUs or, without one, the network cards or the drives
	Rows    []MatrixRow `json:"rows"`    // GPUs, network cards and drives by address, then the NUMA nodes with CPUs
}

// MatrixRow is a device or a NUMA node.
type MatrixRow struct {
	Name     string              `json:"name"`     // gpu0, nic0, nvme0: numbers by address; node0: the id of the NUMA node
	Kind     string              `json:"kind"`     // gpu, nic, nvme or node
	Address  *string             `json:"address"`  // null for NUMA nodes
	Node     *int                `json:"node"`     // null if its NUMA node is not known
	PCIeRoot *string             `json:"pcieRoot"` // null for NUMA nodes, or if it is not known
	Near     map[string]Nearness `json:"near"`     // by column

	bridges []string // addresses of the bridges above it
}

const nodeKind = "node"

// NewMatrix returns the matrix of a machine. It has no virtual functions: they are where
// their physical function is.
func NewMatrix(m numa.Machine) Matrix {
	matrix := Matrix{Columns: []string{}, Rows: []MatrixRow{}}
	parents := make(map[string]string)
	for i := range m.PCI {
		parents[m.PCI[i].Address] = m.PCI[i].Parent
	}
	for _, kind := range []numa.FunctionKind{numa.GPUFunction, numa.NICFunction, numa.NVMeFunction} {
		columns := len(matrix.Columns)
		number := 0
		for i := range m.PCI {
			f := &m.PCI[i]
			if f.Kind != kind || f.PhysFn != "" {
				continue
			}
			row := MatrixRow{Name: fmt.Sprintf("%s%d", kind, number), Kind: string(kind), Address: &f.Address, Node: f.Zone, PCIeRoot: known(f.Root)}
			for above := f.Parent; above != "" && !slices.Contains(row.bridges, above); above = parents[above] {
				row.bridges = append(row.bridges, above)
			}
			matrix.Rows = append(matrix.Rows, row)
			if columns == 0 {
				matrix.Columns = append(matrix.Columns, row.Name)
			}
			number++
		}
	}
	for i := range m.Zones {
		if zone := &m.Zones[i]; zone.Kind == numa.CPUZone {
			matrix.Rows = append(matrix.Rows, MatrixRow{Name: fmt.Sprintf("%s%d", nodeKind, zone.ID), Kind: nodeKind, Node: &zone.ID})
		}
	}
	for i := range matrix.Rows {
		matrix.Rows[i].Near = make(map[string]Nearness)
		for j, column := range matrix.Columns { // their rows are the first ones
			matrix.Rows[i].Near[column] = nearness(m, &matrix.Rows[i], &matrix.Rows[j])
		}
	}
	return matrix
}

func nearness(m numa.Machine, a, b *MatrixRow) Nearness {
	switch {
	case a == b:
		return SamePlace
	case slices.ContainsFunc(a.bridges, func(bridge string) bool { return slices.Contains(b.bridges, bridge) }):
		return SameBridge
	case a.PCIeRoot != nil && b.PCIeRoot != nil && *a.PCIeRoot == *b.PCIeRoot:
		return SameRoot
	case a.Node == nil || b.Node == nil:
		return Unknown
	case *a.Node == *b.Node:
		return SameNode
	}
	one, _ := m.Zone(*a.Node)
	other, _ := m.Zone(*b.Node)
	switch {
	case len(one.Sockets) == 0 || len(other.Sockets) == 0:
		return Unknown
	case slices.ContainsFunc(one.Sockets, func(socket int) bool { return slices.Contains(other.Sockets, socket) }):
		return SameSocket
	}
	return OtherSocket
}

// Table returns the rows of a table, the first of which is its header.
func (m Matrix) Table() [][]string {
	rows := [][]string{append(append([]string{"DEVICE"}, m.Columns...), "ADDRESS")}
	for _, row := range m.Rows {
		cells := []string{row.Name}
		for _, column := range m.Columns {
			cells = append(cells, string(row.Near[column]))
		}
		address := ""
		if row.Address != nil {
			address = *row.Address
		}
		rows = append(rows, append(cells, cmp.Or(address, "-")))
	}
	return rows
}

// Legend returns the words that the matrix has, the nearest first.
func (m Matrix) Legend() (words []Nearness) {
	for _, word := range Nearnesses() {
		if slices.ContainsFunc(m.Rows, func(row MatrixRow) bool {
			return slices.ContainsFunc(m.Columns, func(column string) bool { return row.Near[column] == word })
		}) {
			words = append(words, word)
		}
	}
	return words
}
