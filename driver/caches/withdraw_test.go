package caches

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// After Withdraw, resctrl is as after the mount, except for the groups of other tools.
func TestWithdrawGivesEverythingBack(t *testing.T) {
	files := resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 2))
	read := func() (state numa.ResctrlState) {
		state, err := resctrl.New(files, numa.ResctrlView{}).Read()
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	before := read().Groups[0].Schemata.String()
	for _, group := range []string{resctrl.Name(0), resctrl.Name(3), "other"} {
		if err := files.Mkdir(group); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Mkdir(resctrl.MonitorPath(resctrl.MonitorName("uid"))); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"L3:0=1;1=1\n", "MB:0=10;1=10\n"} {
		if err := files.Write("schemata", text); err != nil {
			t.Fatal(err)
		}
	}
	if read().Groups[0].Schemata.String() == before {
		t.Fatal("the default group has everything before Withdraw")
	}
	for range 2 { // a second call has nothing to do
		if err := Withdraw(resctrl.New(files, numa.ResctrlView{}), nil); err != nil {
			t.Fatal(err)
		}
	}
	state := read()
	if after := state.Groups[0].Schemata.String(); after != before {
		t.Errorf("the default group has %s, want %s", after, before)
	}
	var names []string
	for _, group := range state.Groups {
		names = append(names, group.Name)
	}
	if got := strings.Join(names, ","); got != ",other" || len(state.Groups[0].Monitors) > 0 {
		t.Errorf("groups %q with monitors %v", got, state.Groups[0].Monitors)
	}
}

// What another tool gave the default group stays.
func TestWithdrawLeavesUndividedCachesAlone(t *testing.T) {
	files := resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 2))
	if err := files.Write("schemata", "L3:0=3;1=3\n"); err != nil {
		t.Fatal(err)
	}
	host := resctrl.New(files, numa.ResctrlView{})
	if err := Withdraw(host, nil); err != nil {
		t.Fatal(err)
	}
	state, err := host.Read()
	if err != nil {
		t.Fatal(err)
	}
	if mask := state.Groups[0].Schemata.Masks[0].Mask; mask != 3 {
		t.Errorf("the default group has the mask %x, want 3", mask)
	}
	if err := Withdraw(resctrl.On(t.TempDir(), numa.ResctrlView{}), nil); err != nil {
		t.Errorf("without resctrl: %v", err)
	}
}
