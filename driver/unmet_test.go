package driver

import (
	"maps"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// expectUnmet checks which settings the node does not carry out, and how the texts begin.
func expectUnmet(t *testing.T, driver *Driver, want map[string]string) {
	t.Helper()
	got := driver.Unmet()
	for setting, text := range got {
		if begin, known := want[setting]; known && strings.HasPrefix(text, begin) {
			got[setting] = begin
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("unmet settings %q, want %q", got, want)
	}
}

// A node may have other caches than its NodeConfig was written for, and no resctrl after a
// boot. It is ready all the same.
func TestANodeThatDoesNotDivideItsCaches(t *testing.T) {
	for pools, want := range map[string]map[string]string{
		tenWays: {},
		"{os: {ways: 2}, guaranteed: {ways: 11, classes: 3}}": {SettingCache: "caches are not published: "},
		"{monitor: true}": {},
		"{os: {ways: 2}, restore: true, infra: {ways: 4}}": {},
	} {
		n := newCacheNode(t, pools)
		driver := n.open()
		driver.RepairCaches()
		expectUnmet(t, driver, want)
	}
}

func TestANodeWithoutResctrl(t *testing.T) {
	for pools, want := range map[string]map[string]string{
		tenWays:           {SettingCache: "caches are not published: "},
		"{monitor: true}": {SettingCache: "what claims use of caches is not measured: "},
	} {
		n := newCacheNode(t, pools)
		config := n.config()
		mounted, unmounted := config.Caches.Host, resctrl.On(t.TempDir(), numa.ResctrlView{})
		config.Caches.Host = unmounted
		driver := n.openWith(config)
		driver.RepairCaches()
		expectUnmet(t, driver, want)
		driver.config.Caches.Host = mounted
		driver.RepairCaches()
		expectUnmet(t, driver, nil)
		driver.config.Caches.Host = unmounted
		driver.RepairCaches()
		expectUnmet(t, driver, want)
	}
}

// Groups of other tools may leave a pool too little.
func TestAPoolThatIsNotPublished(t *testing.T) {
	n := newCacheNode(t, tenWays)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		if err := n.groups.Mkdir(name); err != nil {
			t.Fatal(err)
		}
	}
	driver := n.open()
	driver.RepairCaches()
	expectUnmet(t, driver, map[string]string{SettingCache: "cache-0-"})
}

func TestANodeThatDoesNotHaveItsDefault(t *testing.T) {
	n := newPowerNode(t)
	config := n.config()
	config.Tuning.Default = deviceclasses.PerformanceSettings{Governor: "ondemand"}
	driver := n.openWith(config)
	if err := driver.RepairPerformance(false); err == nil {
		t.Fatal("the node has a governor that it does not have")
	}
	expectUnmet(t, driver, map[string]string{SettingPerformance: `performance.default.governor: "ondemand", cpus `})
	driver.config.Tuning.Default = slow() // as if the module with the governor was loaded
	if err := driver.RepairPerformance(true); err != nil {
		t.Fatal(err)
	}
	expectUnmet(t, driver, nil)
}
