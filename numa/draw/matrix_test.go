package draw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

func TestMatrixGolden(t *testing.T) {
	for _, name := range []string{"dgx-h100", "epyc-2s-nps4", "hybrid-laptop"} {
		matrix := NewMatrix(sample.Machine(t, name))
		var text strings.Builder
		for _, row := range matrix.Table() {
			line := ""
			for _, cell := range row {
				line += fmt.Sprintf("%-7s", cell)
			}
			text.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		files.Golden(t, "testdata/matrix/"+name+".txt", text.String())
		if name != "epyc-2s-nps4" {
			continue
		}
		body, err := json.MarshalIndent(matrix, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		files.Golden(t, "testdata/matrix/"+name+".json", string(body)+"\n")
	}
}

// Two functions of one card, a card next to them below a switch, and a GPU whose NUMA node
// is not known.
func TestMatrixOfBridges(t *testing.T) {
	function := func(kind numa.FunctionKind, address, root, parent string, zone *int) numa.PCIFunction {
		return numa.PCIFunction{Kind: kind, Address: address, Root: root, Parent: parent, Zone: zone}
	}
	machine := numa.Machine{
		Zones: []numa.Zone{{ID: 0, Kind: numa.CPUZone, Sockets: []int{0}}, {ID: 1, Kind: numa.CPUZone, Sockets: []int{0}}, {ID: 4, Kind: numa.CPUZone, Sockets: []int{1}}, {ID: 5, Kind: numa.MemoryZone}},
		PCI: []numa.PCIFunction{
			function(numa.BridgeFunction, "0000:00:01.0", "pci0000:00", "", new(0)),
			function(numa.BridgeFunction, "0000:01:00.0", "pci0000:00", "0000:00:01.0", new(0)),
			function(numa.BridgeFunction, "0000:01:01.0", "pci0000:00", "0000:00:01.0", new(0)),
			function(numa.GPUFunction, "0000:02:00.0", "pci0000:00", "0000:01:00.0", new(0)),
			function(numa.NICFunction, "0000:03:00.0", "pci0000:00", "0000:01:01.0", new(0)),
			function(numa.NICFunction, "0000:04:00.0", "pci0000:00", "", new(0)),
			function(numa.NICFunction, "0000:05:00.0", "pci0000:05", "", new(0)),
			function(numa.NICFunction, "0000:06:00.0", "pci0000:06", "", new(1)),
			function(numa.NICFunction, "0000:07:00.0", "pci0000:07", "", new(4)),
			function(numa.NICFunction, "0000:08:00.0", "pci0000:08", "", nil),
			function(numa.NVMeFunction, "0000:09:00.0", "pci0000:09", "", new(5)),
		},
	}
	machine.PCI = append(machine.PCI, numa.PCIFunction{Kind: numa.NICFunction, Address: "0000:05:00.2", Root: "pci0000:05", PhysFn: "0000:05:00.0"})
	matrix := NewMatrix(machine)
	var got []string
	for _, row := range matrix.Rows {
		got = append(got, row.Name+" "+string(row.Near["gpu0"]))
	}
	want := []string{"gpu0 -", "nic0 bridge", "nic1 root", "nic2 node", "nic3 socket", "nic4 far", "nic5 ?", "nvme0 ?", "node0 node", "node1 socket", "node4 far"}
	if !slices.Equal(got, want) || !slices.Equal(matrix.Columns, []string{"gpu0"}) {
		t.Errorf("columns are %q, rows %q\nwant %q", matrix.Columns, got, want)
	}
	if !slices.Equal(matrix.Legend(), Nearnesses()) {
		t.Errorf("legend is %q, want %q", matrix.Legend(), Nearnesses())
	}
	for _, word := range Nearnesses() {
		if word.Meaning() == "" {
			t.Errorf("nothing explains %s", word)
		}
	}
}
