package topology

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestShippedTopologiesParse(t *testing.T) {
	files, err := filepath.Glob("machines/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("found %d topologies (%v), want at least 2", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestParseNamesFieldAndAllowedValues(t *testing.T) {
	const rdt = `{ways: 12, classes: 4, shareable: c00}`
	const pstates = `{mhz: [3000, 2000, 1000], idle: 10}`
	const good = `{sockets: 1, dies: 1, cores: 2, threads: 2, ` +
		`numaNodes: [{cpus: "0-1", memory: 1Gi, hugepages: {2Mi: 4}}, {cpus: "2-3", memory: 1Gi}], pci: [{device: nvme, numaNode: 1}], rdt: ` + rdt + `, pstates: ` + pstates + `}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatalf("the machine that the cases are made from: %v", err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"not a file", good, "sockets", "parse topology: "},
		{"unknown field", "sockets: 1", "sockets: 1, sokets: 1", `unknown field "sokets"`},
		{"no socket", "sockets: 1", "sockets: 0", "sockets: 0 is not in 1-128"},
		{"threads", "threads: 2", "threads: 4", "threads: 4, x86 cores have 1 or 2"},
		{"too many CPUs", "cores: 2", "cores: 128", "is 256 CPUs, allowed are 2-128"},
		{"no memory", `cpus: "2-3", memory: 1Gi`, `cpus: "2-3"`, "numaNodes[1].memory: 0 is less than 128Mi"},
		{"cpu twice", `cpus: "2-3"`, `cpus: "1-3"`, "numaNodes[1].cpus: cpu 1 belongs to numaNodes[0] already"},
		{"cpu outside", `cpus: "2-3"`, `cpus: "2-4"`, "cpu 4, the machine has 0-3"},
		{"cpu on no node", `cpus: "2-3"`, `cpus: "2"`, "3 of 4 CPUs are on a node"},
		{"cpu list", `cpus: "2-3"`, `cpus: "3-2"`, `"3-2" in "3-2" is no CPU`},
		{"hugepage size", "2Mi: 4", "4Mi: 4", `size "4Mi", allowed are 1Gi, 2Mi`},
		{"hugepages over memory", "2Mi: 4", "2Mi: 400", "at most three quarters of the node's memory 1Gi"},
		{"distance rows", "pci:", "distances: [[10]], pci:", "1 rows for 2 NUMA nodes"},
		{"distance value", "pci:", "distances: [[10, 9], [20, 10]], pci:", "distances[0][1]: 9, allowed are"},
		{"device", "nvme", "rtl8139", `"rtl8139", allowed are bochs-display, e1000e, igb, nvme, nvme-sriov, virtio-net-pci`},
		{"device's node", "numaNode: 1", "numaNode: 2", "numaNode: 2, the machine has 0-1"},
		{"device count", "numaNode: 1", "numaNode: 1, count: 9", "count: 9 is not in 1-8"},
		{"no count", "numaNode: 1", "numaNode: 1, count: -1", "count: -1 is not in 1-8"},
		{"root of nothing", "numaNode: 1", "numaNode: 1, sameRoot: true", "pci[0].sameRoot: there is no entry before on numaNode 1"},
		{"root of another node", "numaNode: 1}", "numaNode: 1}, {device: igb, numaNode: 0, sameRoot: true}", "pci[1].sameRoot: there is no entry before on numaNode 0"},
		{"ways", rdt, "{ways: 33, classes: 4}", "rdt.ways: 33 is not in 2-32"},
		{"no ways", rdt, "{classes: 4, monitoring: true}", "rdt.ways: 0 is not in 2-32"},
		{"classes", rdt, "{ways: 12, classes: 17}", "rdt.classes: 17 is not in 2-16"},
		{"shareable ways", rdt, "{ways: 11, classes: 4, shareable: c00}", "rdt.shareable: c00 has ways that the cache does not have, allowed are those in 7ff"},
		{"mask", rdt, "{ways: 12, classes: 4, shareable: 0xc0g}", `mask "0xc0g" is not hexadecimal, such as c00`},
		{"mask without quotes", rdt, "{ways: 12, classes: 4, shareable: 300}", "mask 300 is no string, write it with quotes"},
		{"unknown field of rdt", rdt, "{ways: 12, classes: 4, cdp: true}", `unknown field "cdp"`},
		{"one frequency", pstates, "{mhz: [3000]}", "pstates.mhz: 1 frequencies, allowed are 2-16"},
		{"frequency", pstates, "{mhz: [30000, 1000]}", "pstates.mhz[0]: 30000 is not in 1-10000"},
		{"frequencies in another order", pstates, "{mhz: [3000, 1000, 2000]}", "pstates.mhz[2]: 2000 is not less than the frequency before it, 1000"},
		{"idle", pstates, "{mhz: [3000, 1000], idle: -1}", "pstates.idle: -1 is not in 0-65535"},
		{"too many on a root", "numaNode: 1}", "numaNode: 1, count: 5}, {device: igb, numaNode: 1, count: 4, sameRoot: true}", "pci[1].count: 4 is not in 1-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("%q is not in the good topology", c.old)
			}
			_, err := Parse([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, c.want)
			}
		})
	}
}

// shipped reads a topology of the folder machines.
func shipped(t *testing.T, name string) Topology {
	t.Helper()
	text, err := os.ReadFile("machines/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	machine, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func TestQEMUArgsOfDevicesUnderOneRoot(t *testing.T) {
	machine := shipped(t, "devices")
	args := machine.QEMUArgs()
	bridges := 0
	for _, arg := range args {
		if strings.HasPrefix(arg, "pxb-pcie,") {
			bridges++
		}
	}
	if bridges != len(machine.PCI)-4 {
		t.Errorf("%d host bridges for %d entries, QEMUArgs() %q", bridges, len(machine.PCI), args)
	}
	const drive = "nvme,id=dev6,bus=rp6,serial=rig6,subsys=subsys6,sriov_max_vfs=2,sriov_vq_flexible=4,sriov_vi_flexible=2"
	if at := slices.Index(args, drive); at < 2 || args[at-2] != "nvme-subsys,id=subsys6" {
		t.Errorf("QEMUArgs() lacks %q behind its subsystem: %q", drive, args)
	}
	if card := "virtio-net-pci,id=dev10,bus=rp10,romfile=,aer=on"; !slices.Contains(args, card) {
		t.Errorf("QEMUArgs() lacks %q: %q", card, args)
	}
}

func TestQEMUArgsPlaceMemoryOnlyNodeAndDevice(t *testing.T) {
	args := shipped(t, "memory-only").QEMUArgs()
	for _, want := range []string{
		"3072M", "8,sockets=1,dies=1,cores=4,threads=2", "node,nodeid=1,cpus=4-7,memdev=m1", "node,nodeid=2,memdev=m2",
		"dist,src=1,dst=2,val=28", "pxb-pcie,id=pxb0,bus_nr=32,bus=pcie.0,numa_node=1", "nvme,id=dev1,bus=rp1,serial=rig1",
	} {
		if !slices.Contains(args, want) {
			t.Errorf("QEMUArgs() lacks %q: %q", want, args)
		}
	}
}
