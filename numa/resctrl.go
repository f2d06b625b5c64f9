package numa

import (
	"fmt"
	"slices"
	"strings"
)

// Resctrl describes the resources that the kernel can allocate and monitor,
// /sys/fs/resctrl/info; Documentation/filesystems/resctrl.rst.
type Resctrl struct {
	Caches     []CacheAllocation     // L2, L3, or their CODE and DATA halves, by name
	Bandwidths []BandwidthAllocation // MB, SMBA, by name
	Monitors   []Monitoring          // L3_MON, by name
}

// CacheAllocation is one cache resource whose ways can be allocated to groups.
type CacheAllocation struct {
	Name          string // L2, L2CODE, L2DATA, L3, L3CODE, L3DATA
	CLOSIDs       int    // largest number of groups, including the default group
	Mask          uint64 // cbm_mask: one bit for each unit that can be allocated
	MinBits       int    // smallest number of bits in a mask
	ShareableMask uint64 // bits that other users, such as DMA, also use
	Sparse        bool   // masks need not be contiguous
}

// BandwidthAllocation is one resource whose bandwidth can be throttled.
type BandwidthAllocation struct {
	Name         string // MB, SMBA
	CLOSIDs      int
	MinBandwidth int  // min_bandwidth, in percent or 1/8 GB/s; see Unit
	Granularity  int  // bandwidth_gran, in that unit
	Linear       bool // delay_linear
}

// BandwidthUnit is what a bandwidth in schemata counts.
type BandwidthUnit string

// The units. A percentage throttles each core by itself, the others throttle the group.
const (
	BandwidthPercent   BandwidthUnit = "percent"
	BandwidthMBps      BandwidthUnit = "MBps"
	BandwidthEighthGBs BandwidthUnit = "1/8 GB/s" // AMD
)

// Unit returns the unit of the bandwidths in schemata. options are those that resctrl is
// mounted with; see [ResctrlOptions]. Only AMD's machines have no minimum and no linear
// delay: __rdt_get_mem_config_amd in arch/x86/kernel/cpu/resctrl/core.c.
func (b BandwidthAllocation) Unit(options []string) BandwidthUnit {
	switch {
	case b.Name == "MB" && slices.Contains(options, "mba_MBps"):
		return BandwidthMBps
	case !b.Linear && b.MinBandwidth == 0:
		return BandwidthEighthGBs
	}
	return BandwidthPercent
}

// Monitoring is one resource that can be monitored.
type Monitoring struct {
	Name     string // L3_MON
	RMIDs    int    // largest number of groups that can be monitored
	Features []string
}

const resctrlFolder = "sys/fs/resctrl/info"

// readResctrl reads the resources that the kernel describes.
func (t tree) readResctrl(m *Machine) (err error) {
	m.Resctrl, err = t.resctrlInfo(resctrlFolder)
	return err
}

// resctrlInfo reads the resources that the folder info of resctrl describes; nil if there
// is none. It leaves out a resource without a number that is needed to use it.
func (t tree) resctrlInfo(info string) (*Resctrl, error) {
	names, err := t.folders(info)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	r := &Resctrl{}
	for _, name := range names {
		for _, read := range []func(string, string, *Resctrl) error{t.cacheAllocation, t.bandwidthAllocation, t.monitoring} {
			if err := read(info+"/"+name, name, r); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func (t tree) cacheAllocation(folder, name string, r *Resctrl) error {
	mask, found, err := parseFile(t, folder+"/cbm_mask", parseBitMask)
	if err != nil || !found {
		return err
	}
	cache := CacheAllocation{Name: name, Mask: mask}
	complete, err := t.numbers(folder, map[string]*int{"num_closids": &cache.CLOSIDs, "min_cbm_bits": &cache.MinBits})
	if err != nil || !complete {
		return err
	}
	if cache.ShareableMask, _, err = parseFile(t, folder+"/shareable_bits", parseBitMask); err != nil {
		return err
	}
	if cache.Sparse, _, err = parseFile(t, folder+"/sparse_masks", parseFlag); err != nil {
		return err
	}
	r.Caches = append(r.Caches, cache)
	return nil
}

func (t tree) bandwidthAllocation(folder, name string, r *Resctrl) error {
	bandwidth := BandwidthAllocation{Name: name}
	complete, err := t.numbers(folder, map[string]*int{
		"min_bandwidth": &bandwidth.MinBandwidth, "bandwidth_gran": &bandwidth.Granularity,
		"num_closids": &bandwidth.CLOSIDs,
	})
	if err != nil || !complete {
		return err
	}
	if bandwidth.Linear, _, err = parseFile(t, folder+"/delay_linear", parseFlag); err != nil {
		return err
	}
	r.Bandwidths = append(r.Bandwidths, bandwidth)
	return nil
}

func (t tree) monitoring(folder, name string, r *Resctrl) error {
	monitoring := Monitoring{Name: name}
	complete, err := t.numbers(folder, map[string]*int{"num_rmids": &monitoring.RMIDs})
	if err != nil || !complete {
		return err
	}
	features, _, err := t.text(folder + "/mon_features")
	monitoring.Features = strings.Fields(features)
	r.Monitors = append(r.Monitors, monitoring)
	return err
}

// numbers reads one number from each of the files in a folder; complete is false if a
// file is absent.
func (t tree) numbers(folder string, files map[string]*int) (complete bool, err error) {
	for file, number := range files {
		value, found, err := parseFile(t, folder+"/"+file, parseInt)
		if err != nil || !found {
			return false, err
		}
		*number = value
	}
	return true, nil
}

// parseBitMask reads a hexadecimal mask such as 7ff.
func parseBitMask(text string) (uint64, error) {
	return parseUint(text, 16, 64, "a hexadecimal mask of 64 bits")
}

// parseFlag reads 0 or 1.
func parseFlag(text string) (bool, error) {
	if text != "0" && text != "1" {
		return false, fmt.Errorf("%.80q is neither 0 nor 1", text)
	}
	return text == "1", nil
}
