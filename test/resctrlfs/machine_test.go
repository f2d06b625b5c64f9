package resctrlfs

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// What numa reads below info is the same here as in the files of a made-up machine.
func TestFilesystemOfAMachineDescribesIt(t *testing.T) {
	for _, name := range []string{"intel-2s-snc2", "epyc-2s-nps1"} {
		m, ok := Of(sample.Machine(t, name), Linux72)
		if !ok {
			t.Fatalf("%s has no resctrl", name)
		}
		f, machine := New(m), sample.Preset(t, name).FS()
		for _, file := range []string{
			"L3/num_closids", "L3/cbm_mask", "L3/min_cbm_bits", "L3/shareable_bits", "L3/sparse_masks", "L3/bit_usage",
			"MB/num_closids", "MB/min_bandwidth", "MB/bandwidth_gran", "L3_MON/num_rmids", "L3_MON/mon_features",
		} {
			want, err := fs.ReadFile(machine, "sys/fs/resctrl/info/"+file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fs.ReadFile(f, "info/"+file)
			if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
				t.Errorf("%s: %s: %v (-machine +filesystem)\n%s", name, file, err, diff)
			}
		}
	}
	if _, ok := Of(sample.Machine(t, "rig"), Linux72); ok {
		t.Error("a machine without resctrl has its filesystem")
	}
}

func TestBandwidthInUnitsOfAMD(t *testing.T) {
	m := Rig(Linux612, 1)
	m.Bandwidth = &Bandwidth{Classes: 16, Min: 1, Step: 1}
	f := New(m)
	if err := f.Write("schemata", "MB:0=33\n"); err != nil {
		t.Error(err)
	}
	sameText(t, f, "schemata", "    MB:0=  33\n    L3:0=0fff\n")
	if err := f.Write("schemata", "MB:0=2049\n"); err == nil {
		t.Error("more than the processor can count")
	}
	sameText(t, f, "info/last_cmd_status", "MB value 2049 out of range [1,2048]\n")
}
