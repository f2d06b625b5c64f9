package fake

import (
	"fmt"
	"slices"
	"strings"
)

// addResctrl adds sys/fs/resctrl/info; Documentation/filesystems/resctrl.rst.
func (t tree) addResctrl(l layout) {
	r := l.Resctrl
	if r == nil {
		return
	}
	const info = "sys/fs/resctrl/info/"
	t.line(info+"last_cmd_status", "ok")
	t.line(info+"L3/num_closids", "%d", r.CLOSIDs)
	t.line(info+"L3/cbm_mask", "%x", uint64(1)<<r.Ways-1)
	t.line(info+"L3/min_cbm_bits", "1")
	t.line(info+"L3/shareable_bits", "%x", r.ShareableMask)
	t.line(info+"L3/sparse_masks", "%d", oneIf(r.Sparse))
	t.line(info+"L3/bit_usage", "%s", l.bitUsage())
	if r.MinBandwidth > 0 {
		t.line(info+"MB/num_closids", "%d", r.CLOSIDs)
		t.line(info+"MB/min_bandwidth", "%d", r.MinBandwidth)
		t.line(info+"MB/bandwidth_gran", "%d", r.BandwidthStep)
		t.line(info+"MB/delay_linear", "1")
	}
	if r.RMIDs > 0 {
		t.line(info+"L3_MON/num_rmids", "%d", r.RMIDs)
		t.line(info+"L3_MON/mon_features", "%s", strings.Join(r.Features, "\n"))
		t.line(info+"L3_MON/max_threshold_occupancy", "65536")
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// bitUsage returns who uses each way of each L3, the highest bit first: only the
// default group (S), or devices too (X).
func (l *layout) bitUsage() string {
	var usage strings.Builder
	for bit := l.Resctrl.Ways - 1; bit >= 0; bit-- {
		if l.Resctrl.ShareableMask>>bit&1 != 0 {
			usage.WriteByte('X')
		} else {
			usage.WriteByte('S')
		}
	}
	var ids []int
	for cpu := range l.online.All() {
		if l.cpus[cpu].l3 != noL3 {
			ids = append(ids, l.l3ID(l.cpus[cpu]))
		}
	}
	slices.Sort(ids)
	var domains []string
	for _, id := range slices.Compact(ids) {
		domains = append(domains, fmt.Sprintf("%d=%s", id, usage.String()))
	}
	return strings.Join(domains, ";")
}
