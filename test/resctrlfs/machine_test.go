package resctrlfs

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// What numa reads below info is the same here as in the files of a made-up machine.
func TestFilesystemOfAMachineDescribesIt(t *testing.T) {
	described := 0
	for _, preset := range fake.Presets() {
		machine, err := numa.Read(preset.Machine.FS())
		if err != nil {
			t.Fatal(err)
		}
		m, ok := Of(machine, Linux72)
		if ok != (machine.Resctrl != nil) {
			t.Errorf("%s: ok is %t", preset.Name, ok)
		}
		if !ok {
			continue
		}
		described++
		f := New(m)
		for _, name := range []string{
			"L3/num_closids", "L3/cbm_mask", "L3/min_cbm_bits", "L3/shareable_bits", "L3/sparse_masks", "L3/bit_usage",
			"MB/num_closids", "MB/min_bandwidth", "MB/bandwidth_gran", "L3_MON/num_rmids", "L3_MON/mon_features",
		} {
			want, err := fs.ReadFile(preset.Machine.FS(), "sys/fs/resctrl/info/"+name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fs.ReadFile(f, "info/"+name)
			if diff := cmp.Diff(string(want), string(got)); err != nil || diff != "" {
				t.Errorf("%s: %s: %v (-machine +filesystem)\n%s", preset.Name, name, err, diff)
			}
		}
	}
	if described == 0 {
		t.Error("no machine has resctrl")
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
