package resctrlfs

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// shares gives a new group half of the ways and two CPUs.
func shares(f *FS) func() error {
	return func() error {
		return errors.Join(
			f.Mkdir("g"),
			f.Write("g/schemata", "L3:0=3f\n"),
			f.Write("g/cpus_list", "2-3"),
		)
	}
}

func TestFailFailsOneChange(t *testing.T) {
	f := New(Rig(Linux72, 1))
	f.Fail(2, syscall.EIO)
	err := shares(f)()
	var path *fs.PathError
	if !errors.Is(err, syscall.EIO) || !errors.As(err, &path) || path.Path != "g/schemata" {
		t.Errorf("the second change: %v", err)
	}
	sameText(t, f, "g/schemata", "    MB:0=100\n    L3:0=fff\n")
	sameText(t, f, "g/cpus_list", "2-3\n")
}

func TestKilledStopsAfterSoManyChanges(t *testing.T) {
	left := []string{"", "    MB:0=100\n    L3:0=fff\n", "    MB:0=100\n    L3:0=3f\n"}
	for n, want := range left {
		f := New(Rig(Linux72, 1))
		if killed, err := f.Killed(n, shares(f)); !killed || err != nil {
			t.Errorf("after %d changes: killed %t, %v", n, killed, err)
		}
		if text, err := fs.ReadFile(f, "g/schemata"); string(text) != want || (err != nil) != (n == 0) {
			t.Errorf("after %d changes: schemata is %q, %v", n, text, err)
		}
		if err := f.Rmdir("g"); (err != nil) != (n == 0) {
			t.Errorf("after %d changes, rmdir: %v", n, err)
		}
	}
	f := New(Rig(Linux72, 1))
	if killed, err := f.Killed(len(left), shares(f)); killed || err != nil {
		t.Errorf("a job of %d changes: killed %t, %v", len(left), killed, err)
	}
}

func TestCountersOfAGroupAreThoseOfItsMonitoringGroupsToo(t *testing.T) {
	f := New(Rig(Linux72, 1))
	if err := errors.Join(f.Mkdir("g"), f.Mkdir("g/mon_groups/m")); err != nil {
		t.Fatal(err)
	}
	const file = "mon_data/mon_L3_00/llc_occupancy"
	set := func(group, value string) {
		t.Helper()
		if err := f.SetCounter(group, 0, "llc_occupancy", value); err != nil {
			t.Fatal(err)
		}
	}
	sameText(t, f, "g/"+file, "0\n")
	set("g", "4096")
	set("g/mon_groups/m", "100")
	sameText(t, f, "g/"+file, "4196\n")
	sameText(t, f, "g/mon_groups/m/"+file, "100\n")
	set("g", "Unavailable")
	sameText(t, f, "g/"+file, "100\n")
	set("g/mon_groups/m", "Unavailable")
	sameText(t, f, "g/"+file, "Unavailable\n")
	if err := f.SetCounter("none", 0, "llc_occupancy", "1"); err == nil {
		t.Error("a group that is not there has a counter")
	}
}

func TestMachineWithoutAllocationOrMonitoring(t *testing.T) {
	m := Rig(Linux72, 1)
	m.RMIDs = 0
	f := New(m)
	if err := errors.Join(f.Mkdir("mon_groups"), f.Rmdir("mon_groups")); err != nil {
		t.Errorf("without monitoring, mon_groups is a name as any other: %v", err)
	}
	m = Rig(Linux72, 1)
	m.Ways, m.Bandwidth = 0, nil
	f = New(m)
	if err := f.Mkdir("g"); !errors.Is(err, syscall.EPERM) {
		t.Errorf("without allocation, mkdir: %v", err)
	}
	if err := f.Mkdir("mon_groups/m"); err != nil {
		t.Error(err)
	}
}

func TestFilesAreThoseOfAFileSystem(t *testing.T) {
	f := New(Rig(Linux72, 2))
	if err := f.Mkdir("g"); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(f, "schemata", "g/cpus_list", "info/L3/cbm_mask", "mon_data/mon_L3_01/llc_occupancy"); err != nil {
		t.Error(err)
	}
}

func sameText(t *testing.T, f *FS, name, want string) {
	t.Helper()
	got, err := fs.ReadFile(f, name)
	if err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
