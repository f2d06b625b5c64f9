// Package topology describes a virtual machine's hardware as a file: sockets, cores, NUMA
// nodes with their memory and distances, hugepages, PCI devices on chosen nodes, and what
// caches and frequencies can do. It decides what is a machine that QEMU can build; it
// starts nothing.
package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Limits of one virtual machine. CPUs and memory are bounded by what emulation carries on
// a laptop, nodes by QEMU's 8-bit ids.
const (
	MaxCPUs      = 128
	MaxNumaNodes = 64
	MinNodeBytes = 128 << 20
	MaxBytes     = 64 << 30
)

// Devices that a topology may place, all of them parts of QEMU.
var Devices = []string{"bochs-display", "e1000e", "igb", "nvme", "nvme-sriov", "virtio-net-pci"}

// HugepageSizes that x86 offers, as they are written in a topology file.
var HugepageSizes = []string{"1Gi", "2Mi"}

// Topology is one machine.
type Topology struct {
	Sockets int `json:"sockets"` // packages
	Dies    int `json:"dies"`    // a socket
	Cores   int `json:"cores"`   // a die
	Threads int `json:"threads"` // a core

	NumaNodes []NumaNode `json:"numaNodes"` // the index is the node's id
	// Distances is the SLIT: row i, column j is the distance from node i to node j; 10 on
	// the diagonal, 11-254 elsewhere. Absent: 20 between every two nodes.
	Distances [][]int  `json:"distances,omitempty"`
	PCI       []PCI    `json:"pci,omitempty"`
	IOMMU     bool     `json:"iommu,omitempty"`   // there is one, and the guest's kernel uses it
	RDT       *RDT     `json:"rdt,omitempty"`     // nil: no cache allocation, no monitoring
	PStates   *PStates `json:"pstates,omitempty"` // nil: no frequencies, no idle states
}

// NumaNode is one NUMA node; without CPUs it is a memory-only node.
type NumaNode struct {
	CPUs      string            `json:"cpus,omitempty"`      // a span or a comma-separated list of spans: 0-3,8
	Memory    resource.Quantity `json:"memory"`              // at least 128Mi
	Hugepages map[string]int    `json:"hugepages,omitempty"` // size (2Mi, 1Gi) → pages
}

// PCI is one or more equal functions behind root ports of a host bridge on the node.
type PCI struct {
	Device   string `json:"device"`
	NumaNode int    `json:"numaNode"`
	Count    int    `json:"count,omitempty"` // 1 when absent, at most 8
	// SameRoot puts it behind the host bridge of the entry before, which is on the same
	// node; both together are at most 8.
	SameRoot bool `json:"sameRoot,omitempty"`
}

// Parse reads a topology file strictly and checks that it describes a machine. Errors
// name the field and what it allows.
func Parse(text []byte) (Topology, error) {
	var t Topology
	if err := yaml.UnmarshalStrict(text, &t); err != nil {
		return Topology{}, fmt.Errorf("parse topology: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	for i := range t.PCI {
		if t.PCI[i].Count == 0 {
			t.PCI[i].Count = 1
		}
	}
	if len(t.Distances) == 0 {
		t.Distances = flatDistances(len(t.NumaNodes))
	}
	for _, check := range []func() error{t.checkCounts, t.checkNodes, t.checkDistances, t.checkPCI, t.checkRDT, t.checkPStates} {
		if err := check(); err != nil {
			return Topology{}, err
		}
	}
	return t, nil
}

// CPUs is the number of logical CPUs.
func (t Topology) CPUs() int { return t.Sockets * t.Dies * t.Cores * t.Threads }

// MemoryBytes is the memory of all nodes together.
func (t Topology) MemoryBytes() int64 {
	var sum int64
	for _, n := range t.NumaNodes {
		sum += n.Memory.Value()
	}
	return sum
}

func flatDistances(nodes int) [][]int {
	rows := make([][]int, nodes)
	for i := range rows {
		rows[i] = slices.Repeat([]int{20}, nodes)
		rows[i][i] = 10
	}
	return rows
}

func (t Topology) checkCounts() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"sockets", t.Sockets}, {"dies", t.Dies}, {"cores", t.Cores}, {"threads", t.Threads}} {
		if f.value < 1 || f.value > MaxCPUs {
			return fmt.Errorf("topology: %s: %d is not in 1-%d", f.name, f.value, MaxCPUs)
		}
	}
	if t.Threads > 2 {
		return fmt.Errorf("topology: threads: %d, x86 cores have 1 or 2", t.Threads)
	}
	if t.Sockets*t.Dies > MaxCPUs || t.CPUs() < 2 || t.CPUs() > MaxCPUs {
		return fmt.Errorf("topology: sockets × dies × cores × threads is %d CPUs, allowed are 2-%d", t.CPUs(), MaxCPUs)
	}
	return nil
}

func (t Topology) checkNodes() error {
	if len(t.NumaNodes) < 1 || len(t.NumaNodes) > MaxNumaNodes {
		return fmt.Errorf("topology: numaNodes: %d nodes, allowed are 1-%d", len(t.NumaNodes), MaxNumaNodes)
	}
	owner := map[int]int{}
	for id, n := range t.NumaNodes {
		where := fmt.Sprintf("topology: numaNodes[%d]", id)
		if n.Memory.Value() < MinNodeBytes {
			return fmt.Errorf("%s.memory: %s is less than 128Mi", where, n.Memory.String())
		}
		if err := n.checkHugepages(where); err != nil {
			return err
		}
		spans, err := parseSpans(n.CPUs)
		if err != nil {
			return fmt.Errorf("%s.cpus: %w", where, err)
		}
		for _, s := range spans {
			for cpu := s.first; cpu <= s.last; cpu++ {
				if cpu >= t.CPUs() {
					return fmt.Errorf("%s.cpus: cpu %d, the machine has 0-%d", where, cpu, t.CPUs()-1)
				}
				if other, taken := owner[cpu]; taken {
					return fmt.Errorf("%s.cpus: cpu %d belongs to numaNodes[%d] already", where, cpu, other)
				}
				owner[cpu] = id
			}
		}
	}
	if len(owner) != t.CPUs() {
		return fmt.Errorf("topology: numaNodes: %d of %d CPUs are on a node, all have to be", len(owner), t.CPUs())
	}
	if t.MemoryBytes() > MaxBytes {
		return fmt.Errorf("topology: numaNodes: %d bytes of memory together, at most %d", t.MemoryBytes(), int64(MaxBytes))
	}
	return nil
}

func (n NumaNode) checkHugepages(where string) error {
	var sum int64
	for size, pages := range n.Hugepages {
		if !slices.Contains(HugepageSizes, size) {
			return fmt.Errorf("%s.hugepages: size %q, allowed are %s", where, size, strings.Join(HugepageSizes, ", "))
		}
		if pages < 0 || pages > 1<<20 {
			return fmt.Errorf("%s.hugepages[%s]: %d pages, allowed are 0-%d", where, size, pages, 1<<20)
		}
		q := resource.MustParse(size)
		sum += q.Value() * int64(pages)
	}
	if sum > n.Memory.Value()*3/4 {
		return fmt.Errorf("%s.hugepages: %d bytes, at most three quarters of the node's memory %s", where, sum, n.Memory.String())
	}
	return nil
}

func (t Topology) checkDistances() error {
	if len(t.Distances) != len(t.NumaNodes) {
		return fmt.Errorf("topology: distances: %d rows for %d NUMA nodes", len(t.Distances), len(t.NumaNodes))
	}
	for i, row := range t.Distances {
		if len(row) != len(t.NumaNodes) {
			return fmt.Errorf("topology: distances[%d]: %d columns for %d NUMA nodes", i, len(row), len(t.NumaNodes))
		}
		for j, d := range row {
			if (i == j) != (d == 10) || d < 10 || d > 254 {
				return fmt.Errorf("topology: distances[%d][%d]: %d, allowed are 10 on the diagonal and 11-254 elsewhere", i, j, d)
			}
		}
	}
	return nil
}

func (t Topology) checkPCI() error {
	below := 0 // the host bridge of the entry
	for i, p := range t.PCI {
		if p.SameRoot && (i == 0 || t.PCI[i-1].NumaNode != p.NumaNode) {
			return fmt.Errorf("topology: pci[%d].sameRoot: there is no entry before on numaNode %d", i, p.NumaNode)
		}
		if !p.SameRoot {
			below = 0
		}
		if !slices.Contains(Devices, p.Device) {
			return fmt.Errorf("topology: pci[%d].device: %q, allowed are %s", i, p.Device, strings.Join(Devices, ", "))
		}
		if p.NumaNode < 0 || p.NumaNode >= len(t.NumaNodes) {
			return fmt.Errorf("topology: pci[%d].numaNode: %d, the machine has 0-%d", i, p.NumaNode, len(t.NumaNodes)-1)
		}
		if below += p.Count; p.Count < 1 || below > 8 {
			return fmt.Errorf("topology: pci[%d].count: %d is not in 1-%d", i, p.Count, 8-below+p.Count)
		}
	}
	return nil
}

type span struct{ first, last int }

func (s span) String() string { return fmt.Sprintf("%d-%d", s.first, s.last) }

func parseSpans(list string) ([]span, error) {
	var spans []span
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(text, "-")
		if !ranged {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 16)
		hi, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || lo > hi {
			return nil, fmt.Errorf("%q in %q is no CPU and no span of CPUs such as 0-3", text, list)
		}
		spans = append(spans, span{int(lo), int(hi)})
	}
	return spans, nil
}

// HugepageKiB is one of HugepageSizes as the kernel writes it in the names of sysfs
// folders.
func HugepageKiB(size string) int64 {
	q := resource.MustParse(size)
	return q.Value() >> 10
}
