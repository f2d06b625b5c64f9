package driver

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// offered returns what a published device of a cache has of a capacity, and its taint; it is
// empty without the device.
func offered(driver *Driver, device, capacity string) string {
	for _, d := range driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices {
		if d.Name == device {
			for name, of := range d.Capacity {
				if string(name) == capacity {
					text := of.Value.String()
					for _, taint := range d.Taints {
						text += " " + taint.Value
					}
					return text
				}
			}
		}
	}
	return ""
}

// A group of another tool takes the way that a claim has. The daemon does not see the tasks of
// the host, so the group counts from its first moment, when it has all ways that no other group
// has to itself.
func TestAForeignGroupTakesTheWayOfAClaim(t *testing.T) {
	for name, view := range map[string]numa.ResctrlView{"all tasks": {AllTasks: true}, "own tasks": {}} {
		n := newCacheNode(t, tenWays)
		config := n.config()
		config.Caches.Host = resctrl.New(n.groups, view)
		driver := n.openWith(config)
		expect := func(when, guaranteed, group string) {
			t.Helper()
			if got := offered(driver, "cache-1-guaranteed", "ways"); got != guaranteed {
				t.Errorf("%s, %s: cache 1 offers %q, want %q", name, when, got, guaranteed)
			}
			if got := n.group(2); got != group {
				t.Errorf("%s, %s: group of the claim %s, want %s", name, when, got, group)
			}
		}
		foreign := func(when string) {
			t.Helper()
			state, err := numa.ReadResctrl(n.groups, view)
			if err != nil {
				t.Fatal(err)
			}
			group, _ := state.Group("COS1")
			if got := group.CPUs.String() + " " + group.Schemata.String(); got != "0 L3:0=3;1=4\nMB:0=100;1=100\n" {
				t.Errorf("%s, %s: group COS1 %q", name, when, got)
			}
		}
		mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-guaranteed", "ways=1")))
		expect("before", "4", "4: 3 4")

		if err := n.groups.Mkdir("COS1"); err != nil {
			t.Fatal(err)
		}
		driver.RepairCaches()
		if view.AllTasks {
			expect("an empty group", "4", "4: 3 4")
		} else {
			expect("an empty group", "", "4: 3 4")
		}
		if err := errors.Join(n.groups.Write("COS1/schemata", "L3:0=3;1=4\n"), n.groups.Write("COS1/cpus_list", "0\n")); err != nil {
			t.Fatal(err)
		}
		report := driver.RepairCaches()
		expect("a group with the way of the claim", "3", "4: 3 8")
		if news := strings.Join(report.News, "\n"); !strings.Contains(news, `groups of other tools take ways of cache-1-guaranteed, so that 3 of 4 are left for claims: "COS1"`) {
			t.Errorf("%s: news %q", name, report.News)
		}
		mustPrepare(t, driver, claim("b", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-guaranteed", "ways=2")))
		if got := n.group(3); got != "5: 3 30" {
			t.Errorf("%s: group of the other claim: %s", name, got)
		}
		foreign("with two claims")
		driver = n.openWith(config)
		driver.RepairCaches()
		foreign("after a restart")
		expect("after a restart", "3", "4: 3 8")
		if err := n.groups.Rmdir("COS1"); err != nil {
			t.Fatal(err)
		}
		driver.RepairCaches()
		expect("alone again", "4", "4: 3 8")
	}
}

// An administrator mounts resctrl again with another option, while a claim has a limit: that is
// a fault until the claim ends, because the kernel does not count in its unit any more.
func TestRemountInAnotherUnitOfBandwidth(t *testing.T) {
	n := newCacheNode(t, tenWays)
	options, files := []string{"rw"}, &struct{ *resctrlfs.FS }{n.groups}
	config := n.config()
	config.Caches.Host = resctrl.New(files, numa.ResctrlView{AllTasks: true})
	config.Caches.Options = func() []string { return slices.Clone(options) }
	driver := n.openWith(config)
	mount := func(with ...string) {
		t.Helper()
		machine := resctrlfs.Rig(resctrlfs.Linux612, 2)
		machine.Options = with
		n.groups = resctrlfs.New(machine)
		files.FS, options = n.groups, append([]string{"rw"}, with...)
		if report := driver.RepairCaches(); !report.Changed {
			t.Errorf("mounted with %q: %+v", with, report)
		}
	}
	expect := func(when, group, percent, megabytes string) {
		t.Helper()
		if got := n.group(2); got != group {
			t.Errorf("%s: group of the claim %s, want %s", when, got, group)
		}
		for capacity, want := range map[string]string{"bandwidthPercent": percent, "bandwidthMBps": megabytes} {
			if got := offered(driver, "cache-1-guaranteed", capacity); got != want {
				t.Errorf("%s: cache 1 offers %q of %s, want %q", when, got, capacity, want)
			}
		}
	}
	const percent, megabytes, fault = "300", "12884901885", " ways-missing"
	mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-guaranteed", "ways=1", "bandwidthPercent=40")))
	expect("in percent", "4: 3 4@40", percent, "")
	mount("mba_MBps")
	expect("a claim in percent, mounted in MBps", "4: 3@4294967295 4@4294967295", "", megabytes+fault)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	driver.RepairCaches()
	expect("no claim", ": 3@4294967295 3@4294967295", "", megabytes)
	mustPrepare(t, driver, claim("b", result("cpus", "numa-1", 1), ofCache("cache", "cache-1-guaranteed", "ways=2", "bandwidthMBps=5001")))
	expect("in MBps", "4: 3@4294967295 c@5001", "", megabytes)
	mount()
	expect("a claim in MBps, mounted in percent", "4: 3 c", percent+fault, "")
	mount("mba_MBps")
	expect("mounted in MBps again", "4: 3@4294967295 c@5001", "", megabytes)
}
