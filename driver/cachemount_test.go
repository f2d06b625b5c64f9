package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// With the mount option cdp, a class has a mask for code and one for data, and there are half
// as many classes.
func TestCodeAndDataGetTheSameWays(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, guaranteed: {ways: 4, classes: 3}}")
	machine := resctrlfs.Rig(resctrlfs.Linux72, 2)
	machine.Options = []string{"cdp"}
	n.groups = resctrlfs.New(machine)
	masks := func() (text string) {
		state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
		if err != nil {
			t.Fatal(err)
		}
		group, _ := state.Group(resctrl.Name(2))
		for _, m := range group.Schemata.Masks {
			text += fmt.Sprintf(" %s %d=%x", m.Resource, m.Cache, m.Mask)
		}
		return text
	}
	driver := n.open()
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	if got := masks(); got != " L3CODE 0=3 L3CODE 1=1c L3DATA 0=3 L3DATA 1=1c" {
		t.Errorf("masks of the claim:%s", got)
	}
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	if got := masks(); got != " L3CODE 0=3 L3CODE 1=3 L3DATA 0=3 L3DATA 1=3" {
		t.Errorf("masks after the claim:%s", got)
	}
}

// With the mount option mba_MBps, the kernel counts megabytes per second, and has no limit
// that no group could ask for.
func TestBandwidthInMBps(t *testing.T) {
	n := newCacheNode(t, tenWays)
	machine := resctrlfs.Rig(resctrlfs.Linux612, 2)
	machine.Options = []string{"mba_MBps"}
	n.groups = resctrlfs.New(machine)
	config := n.config()
	config.Caches.Options = func() []string { return []string{"rw", "mba_MBps"} }
	driver := n.openWith(config)
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3", "bandwidthMBps=5001")))
	if got := n.group(2); got != "4-5: 3@4294967295 1c@5001" {
		t.Errorf("group of the claim: %s", got)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	if got := n.group(2); got != ": 3@4294967295 3@4294967295" {
		t.Errorf("group after the claim: %s", got)
	}
}

// On Arm, the kernel says that devices use all ways of each cache, and takes any mask.
// Nothing may be asked of it that it always refuses.
func TestWaysOnArm(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, guaranteed: {ways: 6, classes: 3}, besteffort: {ways: 4, classes: 2}}")
	machine := resctrlfs.Rig(resctrlfs.Linux72, 1)
	machine.Shareable, machine.Sparse = 0xfff, true
	machine.Bandwidth = &resctrlfs.Bandwidth{Classes: 8, Percent: true, Min: 1, Step: 1}
	n.groups = resctrlfs.New(machine)
	for i := range n.machine.Cores {
		n.machine.Cores[i].L3 = new(0)
	}
	n.machine.L3s = []numa.Cache{{ID: 0, CPUs: n.machine.Online}}
	driver := n.open()
	n.groups.Around(func(c resctrlfs.Change, effect func() error) error {
		if strings.HasSuffix(c.Name, "mode") {
			t.Errorf("wrote %+v", c)
		}
		return effect()
	})
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-0-guaranteed", "ways=4", "bandwidthPercent=33")))
	mustPrepare(t, driver, claim("b", result("cpus", "numa-0", 2), ofCache("cache", "cache-0-guaranteed", "ways=2")))
	if a, b := n.group(2), n.group(3); a != "4-5: 3c@33" || b != "2-3: c0" {
		t.Errorf("groups %s and %s", a, b)
	}
}
