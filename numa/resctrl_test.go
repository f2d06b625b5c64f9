package numa

import (
	"strings"
	"testing"
)

func TestResctrlTellsWhatCanBeGiven(t *testing.T) {
	if m := mustRead(t, with(files{"sys/fs/resctrl/": ""})); m.Resctrl != nil {
		t.Errorf("a machine without resctrl has %+v", m.Resctrl)
	}
	const info = "sys/fs/resctrl/info/"
	f := with(files{
		info + "last_cmd_status": "ok",
		info + "L3/num_closids":  "15", info + "L3/cbm_mask": "7fff", info + "L3/min_cbm_bits": "1", info + "L3/shareable_bits": "6000",
		info + "L3/sparse_masks": "1",
		info + "L2/num_closids":  "8", info + "L2/cbm_mask": "ffff", info + "L2/min_cbm_bits": "2", info + "L2/sparse_masks": "0",
		info + "L4/cbm_mask":    "ff", // nothing says how many groups
		info + "MB/num_closids": "15", info + "MB/min_bandwidth": "10", info + "MB/bandwidth_gran": "10", info + "MB/delay_linear": "1",
		info + "SMBA/num_closids": "16",
		info + "L3_MON/num_rmids": "320", info + "L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes",
	})
	sameJSON(t, "resctrl", mustRead(t, f).Resctrl, &Resctrl{
		Caches: []CacheAllocation{
			{Name: "L2", CLOSIDs: 8, Mask: 0xffff, MinBits: 2},
			{Name: "L3", CLOSIDs: 15, Mask: 0x7fff, MinBits: 1, ShareableMask: 0x6000, Sparse: true},
		},
		Bandwidths: []BandwidthAllocation{{Name: "MB", CLOSIDs: 15, MinBandwidth: 10, Granularity: 10, Linear: true}},
		Monitors:   []Monitoring{{Name: "L3_MON", RMIDs: 320, Features: []string{"llc_occupancy", "mbm_total_bytes"}}},
	})
	for _, name := range []string{
		"L3/num_closids", "L3/cbm_mask", "L3/shareable_bits", "L3/sparse_masks", "MB/bandwidth_gran", "MB/delay_linear", "L3_MON/num_rmids",
	} {
		good := f[info+name]
		f[info+name] = "garbage"
		if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), info+name) {
			t.Errorf("%s: Read error = %v", name, err)
		}
		f[info+name] = good
	}
}
