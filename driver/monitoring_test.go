package driver

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

const onlyMonitored = "{monitor: true}"

// monitors returns the monitoring groups of the default group, such as "dra-numa.uid-a 2-3".
func (n *cacheNode) monitors() string {
	n.t.Helper()
	state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{})
	if err != nil {
		n.t.Fatal(err)
	}
	standard, _ := state.Group("")
	var list []string
	for _, group := range standard.Monitors {
		list = append(list, strings.TrimSpace(group.Name+" "+group.CPUs.String()))
	}
	return strings.Join(list, ", ")
}

// withRMIDs replaces the kernel's groups by those of one that counts so many groups.
func (n *cacheNode) withRMIDs(rmids int) *cacheNode {
	machine := resctrlfs.Rig(resctrlfs.Linux612, 2)
	machine.RMIDs = rmids
	n.groups = resctrlfs.New(machine)
	return n
}

func TestClaimWithCPUsIsMonitored(t *testing.T) {
	for _, pools := range []string{onlyMonitored, tenWays} {
		n := newCacheNode(t, pools)
		driver := n.open()
		devices := mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
		mustPrepare(t, driver, claim("b", result("r", "numa-1", 2), result("memory", "numa-0", 0)))
		mustPrepare(t, driver, claim("memory", counted(result("r", "numa-0", 0))))
		if got, want := n.monitors(), "dra-numa.uid-a 2-3, dra-numa.uid-b 4-5"; got != want {
			t.Errorf("%s: groups %q, want %q", pools, got, want)
		}
		if got := devices[0].Attributes[dividing.AttributeGroup].StringValue; got == nil || *got != "mon_groups/dra-numa.uid-a" {
			t.Errorf("%s: attributes %v", pools, devices[0].Attributes)
		}
		n.groups.Around(func(c resctrlfs.Change, _ func() error) error { return fmt.Errorf("%+v: nothing has changed", c) })
		mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
		mustPrepare(t, n.open(), claim("a", result("r", "numa-0", 2)))
		if report := driver.RepairCaches(); report.Changed || len(report.News) > 0 {
			t.Errorf("%s: %+v", pools, report)
		}
		n.groups.Around(nil)
		if err := driver.Unprepare("uid-a"); err != nil {
			t.Fatal(err)
		}
		if got, want := n.monitors(), "dra-numa.uid-b 4-5"; got != want {
			t.Errorf("%s: groups %q, want %q", pools, got, want)
		}
	}
}

// A claim with a class is counted by its class, and only its other CPUs by a monitoring group.
func TestCPUsOfAClassAreNotMonitored(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	devices := mustPrepare(t, driver, claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	if got := n.monitors(); got != "" {
		t.Errorf("groups %q", got)
	}
	for i, want := range map[int]string{0: "", 1: "dra-numa.2"} {
		if got := devices[i].Attributes[dividing.AttributeGroup].StringValue; (got == nil) != (want == "") || got != nil && *got != want {
			t.Errorf("%s: attributes %v, want group %q", devices[i].Device, devices[i].Attributes, want)
		}
	}
	mustPrepare(t, driver, configured(claim("b", result("cpus", "numa-1", 2), result("more", "numa-0", 2), ofCache("cache", "cache-1-guaranteed", "ways=1")),
		opaque(resourceapi.AllocationConfigSourceClaim, `{"apiVersion": "dra.numa/v1alpha1", "kind": "CacheConfig", "cpus": "cpus"}`, "cache")))
	if got, want := n.monitors(), "dra-numa.uid-b 2-3"; got != want {
		t.Errorf("groups %q, want %q", got, want)
	}
}

func TestMonitoringGroupsAreRepaired(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 4)))
	mustPrepare(t, driver, claim("b", result("r", "numa-0", 2)))
	const all = "dra-numa.uid-a 4-7, dra-numa.uid-b 2-3"
	for _, row := range []struct {
		name   string
		change func() error
		want   string
	}{
		{"removed", func() error { return n.groups.Rmdir("mon_groups/dra-numa.uid-a") }, all},
		{"CPUs", func() error { return n.groups.Write("mon_groups/dra-numa.uid-a/cpus_list", "5\n") }, all},
		{"CPUs of the default group", func() error { return n.groups.Write("cpus_list", "0-7\n") }, all},
		{"of no claim", func() error { return n.groups.Mkdir("mon_groups/dra-numa.uid-old") }, all},
		{"another tool", func() error {
			return errors.Join(n.groups.Mkdir("mon_groups/pqos"), n.groups.Write("mon_groups/pqos/cpus_list", "3\n"))
		}, "dra-numa.uid-a 4-7, dra-numa.uid-b 2, pqos 3"},
		{"another tool is gone", func() error { return n.groups.Rmdir("mon_groups/pqos") }, all},
		{"CPUs are offline", func() error { n.groups.SetOnline(4, false); n.groups.SetOnline(5, false); return nil }, "dra-numa.uid-a 6-7, dra-numa.uid-b 2-3"},
		{"CPUs are back", func() error { n.groups.SetOnline(4, true); n.groups.SetOnline(5, true); return nil }, all},
	} {
		if err := row.change(); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		if report := driver.RepairCaches(); len(report.News) > 0 || report.Changed {
			t.Errorf("%s: %+v", row.name, report)
		}
		if got := n.monitors(); got != row.want {
			t.Errorf("%s: groups %q, want %q", row.name, got, row.want)
		}
	}
	n.boot()
	if got := n.monitors(); got != all {
		t.Errorf("after the boot: groups %q", got)
	}
}

// Out of RMIDs, claims are prepared all the same. The oldest are measured.
func TestClaimsAreNotMonitoredWithoutRMIDs(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2}, guaranteed: {ways: 4, classes: 2}}").withRMIDs(5) // the default group, two classes, two claims
	driver := n.open()
	for _, name := range []string{"a", "b", "c", "d"} {
		mustPrepare(t, driver, claim(name, result("r", "numa-1", 1)))
	}
	if got, want := n.monitors(), "dra-numa.uid-a 4, dra-numa.uid-b 5"; got != want {
		t.Errorf("groups %q, want %q", got, want)
	}
	for range 2 {
		if report := driver.RepairCaches(); report.Changed || len(report.News) != 1 || !strings.Contains(report.News[0], "the kernel has no counter (RMID) left") {
			t.Errorf("report %+v", report)
		}
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	driver.RepairCaches()
	if got, want := n.monitors(), "dra-numa.uid-b 5"; got != want {
		t.Errorf("while the RMID is in limbo: groups %q, want %q", got, want)
	}
	n.groups.Settle()
	driver.RepairCaches()
	if got, want := n.monitors(), "dra-numa.uid-b 5, dra-numa.uid-c 6"; got != want {
		t.Errorf("groups %q, want %q", got, want)
	}
	if n.group(2) == "" || n.group(3) == "" {
		t.Error("the classes are missing")
	}
	// A class that another tool removed gets its counter back.
	if err := errors.Join(n.groups.Rmdir("dra-numa.3"), n.groups.Mkdir("mon_groups/pqos")); err == nil {
		t.Fatal("the counter is not in limbo")
	}
	n.groups.Settle()
	if err := n.groups.Mkdir("mon_groups/pqos"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		driver.RepairCaches()
		n.groups.Settle()
	}
	driver.RepairCaches()
	if got, want := n.monitors(), "dra-numa.uid-b 5, pqos"; got != want || n.group(3) == "" {
		t.Errorf("groups %q, want %q; class %q", got, want, n.group(3))
	}
}

// A node that only measures publishes no caches, and leaves ways and classes alone.
func TestNodeThatOnlyMonitors(t *testing.T) {
	n := newCacheNode(t, onlyMonitored)
	if err := n.groups.Write("schemata", "L3:0=ff\n"); err != nil {
		t.Fatal(err)
	}
	driver := n.open()
	publication := driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{})
	if names := publication.Devices; len(names) != 3 {
		t.Errorf("devices %v", names)
	}
	state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
	if err != nil || len(state.Groups) != 1 {
		t.Fatalf("groups %+v, %v", state.Groups, err)
	}
	if mask, _ := state.Groups[0].Schemata.Mask("L3", 0); mask != 0xff {
		t.Errorf("the default group has ways %x", mask)
	}
	wanted := claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=1"))
	if _, _, err := driver.Prepare(wanted, nil); err == nil || !strings.Contains(err.Error(), "this node does not divide its caches") {
		t.Errorf("error %v", err)
	}
	nothing := resctrlfs.Rig(resctrlfs.Linux612, 2)
	nothing.RMIDs = 0
	n.groups = resctrlfs.New(nothing)
	driver = n.open()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	if report := driver.RepairCaches(); report.Changed || len(report.News) != 1 || !strings.HasPrefix(report.News[0], "what claims use of caches is not measured: ") {
		t.Errorf("report %+v", report)
	}
}

func TestNodeThatDoesNotMonitor(t *testing.T) {
	pools := strings.Replace(tenWays, "{os", "{monitor: false, os", 1)
	n := newCacheNode(t, pools)
	driver := n.open()
	if err := n.groups.Mkdir("mon_groups/dra-numa.uid-old"); err != nil {
		t.Fatal(err)
	}
	driver.RepairCaches()
	n.groups.Around(func(c resctrlfs.Change, _ func() error) error { return fmt.Errorf("%+v", c) })
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	if report := driver.RepairCaches(); len(report.News) > 0 || n.monitors() != "" {
		t.Errorf("groups %q, %+v", n.monitors(), report)
	}
}

// What the kernel refuses is repaired, and no claim waits for it.
func TestRefusedMonitoringGroupFailsNoClaim(t *testing.T) {
	n := newCacheNode(t, onlyMonitored)
	driver := n.open()
	n.groups.Around(func(c resctrlfs.Change, effect func() error) error { return syscall.EIO })
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)))
	if err := driver.Unprepare("uid-b"); err != nil {
		t.Fatal(err)
	}
	if report := driver.RepairCaches(); report.Changed || !slices.Equal(report.News, []string{"monitoring group dra-numa.uid-a: mkdir mon_groups/dra-numa.uid-a: input/output error"}) {
		t.Errorf("report %+v", report)
	}
	n.groups.Around(nil)
	if report := driver.RepairCaches(); len(report.News) > 0 || n.monitors() != "dra-numa.uid-a 2-3" {
		t.Errorf("groups %q, report %+v", n.monitors(), report)
	}
}

// The daemon is killed after each change of the kernel's files.
func TestCrashWhileClaimIsMonitoredHeals(t *testing.T) {
	resctrlfs.KilledAtEach(t, 3, func(changes int) bool {
		n := newCacheNode(t, onlyMonitored)
		driver := n.open()
		mustPrepare(t, driver, claim("old", result("r", "numa-1", 2)))
		killed, err := n.groups.Killed(changes, func() error {
			_, _, err := driver.Prepare(claim("a", result("r", "numa-0", 2)), nil)
			return errors.Join(err, driver.Unprepare("uid-old"))
		})
		if err != nil {
			t.Fatal(err)
		}
		driver = n.open()
		if err := driver.Unprepare("uid-old"); err != nil {
			t.Fatal(err)
		}
		if got, want := n.monitors(), "dra-numa.uid-a 2-3"; got != want {
			t.Errorf("killed after %d changes: groups %q, want %q", changes, got, want)
		}
		return killed
	})
}

// Bytes of the claims that had the class before do not count, until the kernel starts
// from 0 again.
func TestBytesOfAClassCountFromPrepare(t *testing.T) {
	n := newCacheNode(t, tenWays)
	driver := n.open()
	count := func(total, local string) {
		t.Helper()
		if err := errors.Join(n.groups.SetCounter("dra-numa.2", 1, "mbm_total_bytes", total), n.groups.SetCounter("dra-numa.2", 1, "mbm_local_bytes", local)); err != nil {
			t.Fatal(err)
		}
	}
	count("5000", "Unavailable")
	wanted := claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3"))
	before := func(driver *Driver) ledger.CountedBytes {
		t.Helper()
		return grantOf(driver, "uid-a").Shares[1].Cache().Before
	}
	mustPrepare(t, driver, wanted)
	count("7000", "100")
	mustPrepare(t, driver, wanted)
	driver = n.open()
	if got, want := before(driver), (ledger.CountedBytes{Total: 5000}); got != want {
		t.Errorf("before the claim: %+v, want %+v", got, want)
	}
	if err := n.groups.Rmdir("dra-numa.2"); err != nil {
		t.Fatal(err)
	}
	if report := driver.RepairCaches(); len(report.News) > 0 {
		t.Errorf("%+v", report)
	}
	if got := before(driver); got != (ledger.CountedBytes{}) {
		t.Errorf("after the group was made again: %+v", got)
	}
	if got := before(n.open()); got != (ledger.CountedBytes{}) {
		t.Errorf("on record: %+v", got)
	}
}

// Random claims with and without ways come and go, and the kernel refuses some changes.
// No class and no counter is left behind, and what can be counted is.
func TestRandomClaimsLeakNoCounters(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	const classes, rmids = 3, 7
	r := rand.New(rand.NewPCG(20, 6))
	n := newCacheNode(t, fmt.Sprintf("{os: {ways: 2}, guaranteed: {ways: 8, classes: %d}}", classes)).withRMIDs(rmids)
	driver := n.open()
	withWays := make(map[string]bool) // by the name of a claim
	for step := range *cacheSteps {
		if r.IntN(8) == 0 {
			n.groups.Fail(1+r.IntN(3), []error{syscall.EIO, syscall.EBUSY, syscall.ENOSPC}[r.IntN(3)])
		}
		name := fmt.Sprint("c", r.IntN(6))
		if _, has := withWays[name]; has {
			if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			delete(withWays, name)
		} else if len(withWays) < 4 {
			wanted, ways := claim(name, result("cpus", "numa-1", 1)), r.IntN(2) == 0 && !slices.Contains(slices.Collect(maps.Values(withWays)), true)
			if ways {
				wanted = claim(name, result("cpus", "numa-1", 1), ofCache("cache", "cache-1-guaranteed", "ways=3"))
			}
			if _, _, err := driver.Prepare(wanted, nil); err != nil && !ways {
				t.Fatalf("step %d: a claim that is only counted: %v", step, err)
			}
			withWays[name] = ways
		}
		n.groups.Around(nil)
		n.groups.Settle()
		driver.RepairCaches()
		n.groups.Settle() // what was removed can be counted again
		driver.RepairCaches()
		counted := min(rmids-1-classes, len(withWays)-strings.Count(fmt.Sprint(withWays), "true"))
		state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
		if err != nil || len(state.Groups) != 1+classes || len(state.Groups[0].Monitors) != counted {
			t.Fatalf("step %d: claims %v: %d groups, monitoring groups %q, want %d and %d; %v", step, withWays, len(state.Groups), n.monitors(), 1+classes, counted, err)
		}
		for _, group := range state.Groups[0].Monitors {
			if group.CPUs.Size() != 1 {
				t.Fatalf("step %d: group %s has CPUs %s", step, group.Name, group.CPUs)
			}
		}
	}
}
