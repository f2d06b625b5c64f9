package driver

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// text returns what the kernel has of a group; the default group has no name.
func (n *cacheNode) text(group string) string {
	n.t.Helper()
	state, err := numa.ReadResctrl(n.groups, numa.ResctrlView{AllTasks: true})
	if err != nil {
		n.t.Fatal(err)
	}
	found, _ := state.Group(group)
	return found.CPUs.String() + " " + strings.ReplaceAll(found.Schemata.String(), "\n", " ")
}

const reservedGroup = 1<<16 + 1

// The reserved CPUs of the test's node are 0-1.
func TestCPUsOfNoClaimHaveWaysAndLimits(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 1, bandwidthPercent: 50}, reserved: {ways: 2, bandwidthPercent: 35}, infra: {ways: 9, cpus: \"1\", bandwidthPercent: 20}, guaranteed: {ways: 4}}")
	n.open()
	for group, want := range map[string]string{
		"":                          "2-7 L3:0=1;1=1 MB:0=50;1=50 ",
		resctrl.Name(reservedGroup): "0 L3:0=6;1=6 MB:0=40;1=40 ",
		resctrl.Name(0):             "1 L3:0=ff8;1=ff8 MB:0=20;1=20 ",
		resctrl.Name(2):             " L3:0=1;1=1 MB:0=100;1=100 ",
	} {
		if got := n.text(group); got != want {
			t.Errorf("group %q: %q, want %q", group, got, want)
		}
	}
}

// Groups have ways that follow those of reserved, whatever becomes of the list, and claims
// keep their number of ways.
func TestGroupsOfReservedCPUs(t *testing.T) {
	const dpdk, db = `{name: dpdk, cpus: "0", ways: 2, bandwidthPercent: 35}`, `{name: db, cpus: "1", ways: 1}`
	n := newCacheNode(t, "")
	use := func(groups string) *Driver {
		n.pools = "{os: {ways: 1}, groups: [" + groups + "], guaranteed: {ways: 5, classes: 4}}"
		driver := n.open()
		if report := driver.RepairCaches(); len(report.News) > 0 {
			t.Errorf("groups %s: news %q", groups, report.News)
		}
		return driver
	}
	mustPrepare(t, use(dpdk), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=5")))
	for _, step := range []struct {
		groups string
		want   [4]string // of dpdk, db, the default group and the claim
	}{
		{dpdk, [4]string{"0 L3:0=6;1=6 MB:0=40;1=40 ", " ", "1-3,6-7 L3:0=1;1=1 MB:0=100;1=100 ", "4-5 L3:0=1;1=f8 MB:0=100;1=100 "}},
		{dpdk + ", " + db, [4]string{"0 L3:0=6;1=6 MB:0=40;1=40 ", "1 L3:0=8;1=8 MB:0=100;1=100 ", "2-3,6-7 L3:0=1;1=1 MB:0=100;1=100 ", "4-5 L3:0=1;1=1f0 MB:0=100;1=100 "}},
		{db + ", " + dpdk, [4]string{"0 L3:0=c;1=c MB:0=40;1=40 ", "1 L3:0=2;1=2 MB:0=100;1=100 ", "2-3,6-7 L3:0=1;1=1 MB:0=100;1=100 ", "4-5 L3:0=1;1=1f0 MB:0=100;1=100 "}},
		{`{name: dpdk, cpus: 0-1, ways: 1}`, [4]string{"0-1 L3:0=2;1=2 MB:0=100;1=100 ", " ", "2-3,6-7 L3:0=1;1=1 MB:0=100;1=100 ", "4-5 L3:0=1;1=7c MB:0=100;1=100 "}},
	} {
		driver := use(step.groups)
		got := [4]string{n.text(resctrl.NameOf("dpdk")), n.text(resctrl.NameOf("db")), n.text(""), n.text(resctrl.Name(2))}
		if got != step.want {
			t.Errorf("groups %s: %q, want %q", step.groups, got, step.want)
		}
		if err := errors.Join(n.groups.Rmdir(resctrl.NameOf("dpdk")), n.groups.Write("schemata", "L3:0=fff;1=fff\n")); err != nil {
			t.Fatal(err) // another program
		}
		driver.RepairCaches()
		if got[0] = n.text(resctrl.NameOf("dpdk")); got != step.want {
			t.Errorf("groups %s after a repair: %q, want %q", step.groups, got, step.want)
		}
	}
	n.boot()
	if got := n.text(resctrl.NameOf("dpdk")); got != "0-1 L3:0=2;1=2 MB:0=100;1=100 " {
		t.Errorf("after a boot: %q", got)
	}
	if err := caches.Withdraw(n.config().Caches.Host, nil); err != nil {
		t.Fatal(err)
	}
	if dpdk, all := n.text(resctrl.NameOf("dpdk")), n.text(""); dpdk != " " || all != "0-7 L3:0=fff;1=fff MB:0=100;1=100 " {
		t.Errorf("after the driver was uninstalled: %q and %q", dpdk, all)
	}
}

// What the kernel refuses is said, and repaired.
func TestAGroupThatTheKernelRefuses(t *testing.T) {
	n := newCacheNode(t, `{os: {ways: 1}, groups: [{name: dpdk, cpus: "0", ways: 2}], guaranteed: {ways: 5}}`)
	n.groups.Around(func(c resctrlfs.Change, effect func() error) error {
		if strings.HasPrefix(c.Name, resctrl.NameOf("dpdk")) {
			return syscall.ENOSPC
		}
		return effect()
	})
	driver := n.open()
	report := driver.RepairCaches()
	if len(report.News) == 0 || !strings.HasPrefix(report.News[0], "group dra-numa.dpdk: mkdir dra-numa.dpdk: no space left on device") {
		t.Errorf("news %q", report.News)
	}
	n.groups.Around(nil)
	if report := driver.RepairCaches(); len(report.News) > 0 || n.text(resctrl.NameOf("dpdk")) != "0 L3:0=6;1=6 MB:0=100;1=100 " {
		t.Errorf("news %q, group %q", report.News, n.text(resctrl.NameOf("dpdk")))
	}
}

// A pool that is added takes a class. A mixed claim has the highest one, so an idle one below is
// given up until the claim ends.
func TestAPoolIsAddedBesideAMixedClaim(t *testing.T) {
	for pool, group := range map[string]string{
		`groups: [{name: dpdk, cpus: "0", ways: 2}]`: resctrl.NameOf("dpdk"),
		`reserved: {ways: 2}`:                        resctrl.Name(reservedGroup),
		`infra: {ways: 2, cpus: "0"}`:                resctrl.Name(0),
		`shared: {ways: 2, members: 10}`:             resctrl.Name(1),
	} {
		n := newCacheNode(t, "{os: {ways: 1}, guaranteed: {ways: 5}}")
		mustPrepare(t, n.open(), mixedClaim("a", 1))
		n.pools = "{os: {ways: 1}, guaranteed: {ways: 5}, " + pool + "}"
		driver := n.open()
		expect := func(when, want string) {
			t.Helper()
			report := driver.RepairCaches()
			if unmet := driver.Unmet(); len(report.News) > 0 || len(unmet) > 0 {
				t.Errorf("%s, %s: news %q, not done is %q", pool, when, report.News, unmet)
			}
			if n.text(group) == " " {
				t.Errorf("%s, %s: there is no group %s", pool, when, group)
			}
			if got := offered(driver, "cache-1-guaranteed", "classes"); got != "6" {
				t.Errorf("%s, %s: %s classes, want 6", pool, when, got)
			}
			claimed := ""
			for number := 2; number <= 8; number++ {
				claimed += " " + strings.Split(n.group(number), ":")[0]
				if n.group(number) == "" {
					claimed += "-"
				}
			}
			if claimed != want {
				t.Errorf("%s, %s: classes have CPUs%s, want%s", pool, when, claimed, want)
			}
		}
		expect("with the claim", "      - 4")
		mustPrepare(t, driver, mixedClaim("b", 1))
		expect("with another one", "     5 - 4")
		if err := driver.Unprepare("uid-a"); err != nil {
			t.Fatal(err)
		}
		mustPrepare(t, driver, ownClaim("c", 0))
		expect("without the first one", " 2    5  -")
	}
}

// More mixed claims than the classes that new pools leave.
func TestPoolsThatClaimsLeaveNoClassFor(t *testing.T) {
	const db, dpdk = `{name: db, cpus: "0", ways: 1}`, `{name: dpdk, cpus: "1", ways: 1}`
	n := newCacheNode(t, "{os: {ways: 1}, groups: ["+db+"], guaranteed: {ways: 6}}")
	driver := n.open()
	for i, zone := range []int{0, 0, 1, 1, 1, 1} {
		mustPrepare(t, driver, mixedClaim(string(rune('a'+i)), zone))
	}
	use := func(pools string) {
		n.pools = "{os: {ways: 1}, guaranteed: {ways: 6}, " + pools + "}"
		driver = n.open()
		driver.RepairCaches()
	}
	use("groups: [" + db + ", " + dpdk + "]")
	if got, want := driver.Unmet()[SettingCache], "the kernel has no group dra-numa.dpdk"; got != want {
		t.Errorf("not done is %q, want %q", got, want)
	}
	use("groups: [" + db + "], shared: {ways: 2, members: 10}")
	if got := offered(driver, "cache-1-shared", "members"); got != "10 ways-missing" {
		t.Errorf("members of a pool that the kernel has no group for: %q", got)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	driver.RepairCaches()
	if got := offered(driver, "cache-1-shared", "members"); got != "10" {
		t.Errorf("members after a claim has ended: %q", got)
	}
	use("groups: [" + db + ", " + dpdk + "]")
	if unmet := driver.Unmet(); len(unmet) > 0 {
		t.Errorf("not done is %q", unmet)
	}
}

// The operator's names are those that the driver knows as its own.
func TestNamesOfGroupsAreOfTheDriver(t *testing.T) {
	for _, name := range []string{"a", "a-", "db-2", "z0123456789-0123456789-012345678"} {
		pools := deviceclasses.CachePools{OS: &deviceclasses.CacheWays{Ways: 1}, Groups: []deviceclasses.CacheGroup{{Name: name, CPUs: "0", CacheWays: deviceclasses.CacheWays{Ways: 1}}}}
		if err := pools.Validate(); err != nil || !resctrl.IsOurs(resctrl.NameOf(name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestLimitOfTheDefaultGroupIsNotTouchedWithoutOne(t *testing.T) {
	n := newCacheNode(t, tenWays)
	if err := n.groups.Write("schemata", "MB:0=30\n"); err != nil {
		t.Fatal(err)
	}
	driver := n.open()
	driver.RepairCaches()
	if got, want := n.text(""), "0-7 L3:0=3;1=3 MB:0=30;1=100 "; got != want {
		t.Errorf("the default group: %q, want %q", got, want)
	}
}

func TestCPUsOfClaimsAreNotOfInfra(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 1}, infra: {ways: 9, cpus: 0-2}, guaranteed: {ways: 4}}")
	report := n.open().RepairCaches()
	want := `caches are not published: cache.infra.cpus: 2 are not reserved, so claims may get them: allowed are some of "0-1"`
	if len(report.News) != 1 || report.News[0] != want {
		t.Errorf("news %q, want %q", report.News, want)
	}
}

// A claim keeps CPUs that were reserved after it was prepared.
func TestReservedCPUsThatAClaimHasStayWithIt(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 1}, reserved: {ways: 2}, guaranteed: {ways: 4}}")
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	config := n.config()
	config.Reserved.Insert(4)
	if report := n.openWith(config).RepairCaches(); len(report.News) > 0 {
		t.Errorf("news %q", report.News)
	}
	if own, reserved := n.group(2), n.group(reservedGroup); own != "4-5: 1 38" || reserved != "0-1: 6 6" {
		t.Errorf("groups %s and %s", own, reserved)
	}
}

func TestEverythingIsGivenBackWhenNoClaimHasWays(t *testing.T) {
	n := newCacheNode(t, "{os: {ways: 2, bandwidthPercent: 50}, infra: {ways: 8, cpus: 0-1}, guaranteed: {ways: 4}}")
	mustPrepare(t, n.open(), claim("a", result("cpus", "numa-1", 2), ofCache("cache", "cache-1-guaranteed", "ways=3")))
	n.pools = strings.TrimSuffix(n.pools, "}") + ", restore: true}"
	driver := n.open()
	if got := n.group(2); got != "4-5: 3 1c" {
		t.Errorf("while the claim has ways: %s", got)
	}
	for _, device := range Devices(n.machine, n.config(), nil) {
		if strings.HasPrefix(device.Name, "cache-") {
			t.Errorf("%s is published", device.Name)
		}
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	report := driver.RepairCaches()
	if want := "0-7 L3:0=fff;1=fff MB:0=100;1=100 "; n.text("") != want {
		t.Errorf("the default group: %q, want %q", n.text(""), want)
	}
	state, _ := numa.ReadResctrl(n.groups, numa.ResctrlView{})
	if len(state.Groups) != 1 || len(report.News) != 1 || !strings.Contains(report.News[0], "cache.restore is set") {
		t.Errorf("groups %+v, news %q", state.Groups, report.News)
	}
}
