// Package resctrlfs is a resctrl filesystem in memory, for tests of what reads and writes
// one. It answers as the kernel does: the same errors, the same texts in last_cmd_status,
// the same rounding. TestFakeAnswersAsTheKernelDid compares it with what real kernels
// answered; see testdata/README.md. It can fail or stop a test's code at any change.
//
// It has L3 allocation, memory bandwidth and L3 monitoring. It has no L2, no pseudo-locking,
// no sub-NUMA clustering, and no counters that have to be assigned. No kernel was asked about
// the mount options cdp and mba_MBps: bw_validate, rdtgroup_cbm_overlaps and
// schemata_list_create in fs/resctrl say what they change.
package resctrlfs

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Machine is what the filesystem describes.
type Machine struct {
	Kernel Kernel
	Caches []Cache // L3; ids and CPUs differ

	Ways      int    // bits of a mask, 1 to 32; 0 means that ways cannot be allocated
	Classes   int    // num_closids of L3
	MinBits   int    // min_cbm_bits
	Shareable uint64 // shareable_bits
	Sparse    bool   // sparse_masks: masks need not be contiguous
	CodeData  bool   // the processor could have separate masks for code and data

	Bandwidth *Bandwidth // nil means that bandwidth cannot be throttled

	// Options are those of the mount: cdp, for which CodeData has to be true, and mba_MBps.
	Options []string

	RMIDs    int      // num_rmids; 0 means that nothing is monitored
	Features []string // mon_features, such as llc_occupancy
}

// Kernel is what differs between the kernels that were asked.
type Kernel int

// The kernels, the oldest first: those of Debian 13 and of its backports.
const (
	Linux612 Kernel = iota + 1
	Linux72
)

// Cache is one L3.
type Cache struct {
	ID    int        // as in schemata
	CPUs  cpuset.Set // also those that are offline now
	Bytes int        // all of its ways
}

// Bandwidth is the resource MB.
type Bandwidth struct {
	Classes int  // num_closids of MB
	Percent bool // of what a core can use, as on Intel; else 1/8 GB/s, as on AMD
	Min     int  // min_bandwidth
	Step    int  // bandwidth_gran
}

// max returns the largest value.
func (b *Bandwidth) max() uint64 {
	if b.Percent {
		return 100
	}
	return 2048
}

// Rig returns the machine of the virtual test nodes: 8 CPUs, divided among the caches, 12
// ways with two of them for devices too, 8 classes and 32 RMIDs.
func Rig(kernel Kernel, caches int) Machine {
	m := Machine{
		Kernel: kernel, Ways: 12, Classes: 8, MinBits: 1, Shareable: 0xc00, CodeData: true,
		Bandwidth: &Bandwidth{Classes: 8, Percent: true, Min: 10, Step: 10},
		RMIDs:     32, Features: []string{"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"},
	}
	const cpus = 8
	for id := range caches {
		m.Caches = append(m.Caches, Cache{ID: id, Bytes: 16 << 20})
	}
	for cpu := range cpus {
		m.Caches[cpu*caches/cpus].CPUs.Insert(cpu)
	}
	return m
}

// Of returns what the filesystem of a machine describes, if it has resctrl with L3.
func Of(machine numa.Machine, kernel Kernel) (m Machine, ok bool) {
	if machine.Resctrl == nil {
		return Machine{}, false
	}
	m.Kernel = kernel
	for _, l3 := range machine.L3s {
		cache := Cache{ID: l3.ID, CPUs: l3.CPUs}
		if l3.SizeBytes != nil {
			cache.Bytes = int(*l3.SizeBytes)
		}
		m.Caches = append(m.Caches, cache)
	}
	for _, c := range machine.Resctrl.Caches {
		if c.Name == "L3" {
			m.Ways, m.Classes, m.MinBits = bits.Len64(c.Mask), c.CLOSIDs, c.MinBits
			m.Shareable, m.Sparse, m.CodeData = c.ShareableMask, c.Sparse, true
		}
	}
	for _, b := range machine.Resctrl.Bandwidths {
		if b.Name == "MB" {
			m.Bandwidth = &Bandwidth{Classes: b.CLOSIDs, Percent: b.Granularity > 1, Min: b.MinBandwidth, Step: b.Granularity}
		}
	}
	for _, monitor := range machine.Resctrl.Monitors {
		if monitor.Name == "L3_MON" {
			m.RMIDs, m.Features = monitor.RMIDs, monitor.Features
		}
	}
	return m, len(m.Caches) > 0
}

// full returns the mask with all ways.
func (m *Machine) full() uint64 { return uint64(1)<<m.Ways - 1 }

// cpus returns all CPUs, also those that are offline.
func (m *Machine) cpus() (all cpuset.Set) {
	for _, cache := range m.Caches {
		all = all.Union(cache.CPUs)
	}
	return all
}

// cacheNames returns the resources of the caches, in the order of their lines in schemata.
func (m *Machine) cacheNames() []string {
	switch {
	case m.Ways == 0:
		return nil
	case slices.Contains(m.Options, "cdp"):
		return []string{"L3DATA", "L3CODE"}
	}
	return []string{"L3"}
}

// cacheClasses returns num_closids of each of them. A group needs one for its code and one
// for its data.
func (m *Machine) cacheClasses() int { return m.Classes / max(len(m.cacheNames()), 1) }

// countsMBps reports whether a bandwidth is in MBps, which the kernel neither checks nor
// rounds: bw_validate in fs/resctrl/ctrlmondata.c.
func (m *Machine) countsMBps() bool { return slices.Contains(m.Options, "mba_MBps") }

// noLimit returns the bandwidth of a group without a limit.
func (m *Machine) noLimit() uint64 {
	if m.countsMBps() {
		return math.MaxUint32 // MBA_MAX_MBPS
	}
	return m.Bandwidth.max()
}

// classes returns how many control groups there can be, the root group included: the
// least that any resource has.
func (m *Machine) classes() int {
	var counts []int
	if m.Ways > 0 {
		counts = append(counts, m.cacheClasses())
	}
	if m.Bandwidth != nil {
		counts = append(counts, m.Bandwidth.Classes)
	}
	if len(counts) == 0 {
		return 0
	}
	return slices.Min(counts)
}

// firstRun leaves of a mask the lowest bits that follow each other.
func firstRun(mask uint64) uint64 {
	start := bits.TrailingZeros64(mask)
	length := bits.TrailingZeros64(^(mask >> start))
	return mask & ((uint64(1)<<length - 1) << start)
}
