package caches

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Bandwidth is how the memory bandwidth of a claim can be limited. It is never a
// reservation, so limits are not summed. Amounts are in the unit of the capacity.
type Bandwidth struct {
	Capacity resourceapi.QualifiedName // bandwidthPercent, which limits each core by itself, or bandwidthMBps
	Min      int
	Max      int // stands for no limit
	Step     int

	granularity int // the kernel rounds up to a multiple of it
	unit        int // what 1 in schemata stands for
}

// AMD's processors count 1/8 GB/s. The kernel takes up to 2048 on each of them:
// MAX_MBA_BW_AMD in arch/x86/kernel/cpu/resctrl/core.c.
const (
	eighthMBps  = 125
	mostEighths = 2048
)

// bandwidthResource is the name of the bandwidth of memory in schemata.
const bandwidthResource = "MB"

// bandwidthOf returns nil if the kernel cannot limit bandwidth. If it counts MBps,
// min_bandwidth and bandwidth_gran, which are percentages, do not count.
func bandwidthOf(r *numa.Resctrl, options []string) *Bandwidth {
	i := slices.IndexFunc(r.Bandwidths, func(b numa.BandwidthAllocation) bool { return b.Name == bandwidthResource })
	if i < 0 {
		return nil
	}
	kernel := r.Bandwidths[i]
	switch kernel.Unit(options) {
	case numa.BandwidthMBps:
		return &Bandwidth{deviceclasses.CapacityBandwidthMBps, 1, deviceclasses.MaxBandwidthMBps, 1, 1, 1}
	case numa.BandwidthEighthGBs:
		return &Bandwidth{deviceclasses.CapacityBandwidthMBps, eighthMBps, mostEighths * eighthMBps, eighthMBps, eighthMBps, eighthMBps}
	}
	const most = deviceclasses.MaxBandwidthPercent
	b := &Bandwidth{deviceclasses.CapacityBandwidthPercent, min(max(1, kernel.MinBandwidth), most), most, max(1, kernel.Granularity), max(1, kernel.Granularity), 1}
	if (most-b.Min)%b.Step != 0 || b.Min%b.granularity != 0 {
		b.Step = 1 // the policy of a capacity counts steps from the minimum, and the kernel from 0
	}
	return b
}

// Round returns what the kernel makes of an amount: bw_validate in
// fs/resctrl/ctrlmondata.c. Amounts below the minimum are raised to it.
func (b *Bandwidth) Round(amount int) int {
	steps := (max(amount, b.Min) + b.granularity - 1) / b.granularity
	return min(steps*b.granularity, b.Max)
}

// Schemata returns the value for the file schemata of an amount that Round returned.
func (b *Bandwidth) Schemata(amount int) int { return amount / b.unit }
