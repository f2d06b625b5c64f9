package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// powerNode is a disk with a kernel that changes frequencies, idle states and interrupts.
type powerNode struct {
	disk
	power *sysfs.PowerHost
	boot  string
	reads *int // of the kernel's files
}

func newPowerNode(t testing.TB) *powerNode {
	t.Helper()
	return &powerNode{newDisk(t), sysfs.NewPowerHost(sysfs.Power{
		CPUs: 8, Driver: sysfs.IntelPstate, Idle: "intel_idle", LimitKHz: 3_000_000,
		Lines: []sysfs.Line{{Number: 24, Name: "virtio0", CPUs: "0-7"}, {Number: 27, Name: "nvme0q1", CPUs: "4-5", Managed: true}, {Number: 28, Name: "xhci", CPUs: "5"}},
	}), "boot-1", new(int)}
}

func (n *powerNode) config() Config {
	config := testConfig()
	config.BootID, config.Machine = n.boot, countedFS{n.power, n.reads}
	config.Tuning = &tuning.Config{Frequencies: cpufreq.New(config.Machine, n.power.Write), Interrupts: interrupts.New(config.Machine, n.power.Write), Uncore: uncore.New(config.Machine, n.power.Write), ClaimsTune: true}
	return config
}

func (n *powerNode) open() *Driver { n.t.Helper(); n.power.Settle(); return n.openWith(n.config()) }

// dying is the configuration of a daemon that dies after some writes. left is how many are
// left, and negative when it has died.
func (n *powerNode) dying(writes int) (config Config, left *int) {
	config, left = n.config(), &writes
	write := func(name, text string) error {
		if *left--; *left < 0 {
			return errCrash
		}
		return n.power.Write(name, text)
	}
	config.Tuning = &tuning.Config{Frequencies: cpufreq.New(n.power, write), Interrupts: interrupts.New(n.power, write), Uncore: uncore.New(n.power, write), ClaimsTune: true}
	return config, left
}

// countedFS counts how often files are looked at.
type countedFS struct {
	*sysfs.PowerHost
	looks *int
}

func (c countedFS) Open(name string) (fs.File, error) { *c.looks++; return c.PowerHost.Open(name) }
func (c countedFS) ReadLink(name string) (string, error) {
	*c.looks++
	return c.PowerHost.ReadLink(name)
}

func (c countedFS) Lstat(name string) (fs.FileInfo, error) {
	*c.looks++
	return c.PowerHost.Lstat(name)
}

const fastAndQuiet = `"minFrequency": "max", "governor": "performance", "idleLatency": 0, "interrupts": "away"`

// tuned returns the claim with a PerformanceConfig.
func tunedClaim(claim *resourceapi.ResourceClaim, fields string, requests ...string) *resourceapi.ResourceClaim {
	return configured(claim, performanceOf(resourceapi.AllocationConfigSourceClaim, fields, requests...))
}

func performanceOf(source resourceapi.AllocationConfigSource, fields string, requests ...string) resourceapi.DeviceAllocationConfiguration {
	return opaque(source, `{"apiVersion": "dra.numa/v1alpha1", "kind": "PerformanceConfig", `+fields+`}`, requests...)
}

func (n *powerNode) expect(want map[string]string) {
	n.t.Helper()
	for name, text := range n.power.Values() {
		if text != want[name] {
			n.t.Errorf("%s has %q, want %q", name, text, want[name])
		}
	}
}

// expectFiles compares some files below sys/devices/system/cpu and proc/irq.
func (n *powerNode) expectFiles(want map[string]string) {
	n.t.Helper()
	values := n.power.Values()
	for name, text := range want {
		full := "sys/devices/system/cpu/" + name
		if strings.HasPrefix(name, "proc/") {
			full = name
		}
		if values[full] != text+"\n" {
			n.t.Errorf("%s has %q, want %q", name, values[full], text)
		}
	}
}

// prepareAgain has another daemon prepare what is prepared: it writes nothing.
func (n *powerNode) prepareAgain(wanted *resourceapi.ResourceClaim) *Driver {
	n.t.Helper()
	checkpoint, writes := n.files()[ledger.CheckpointName], n.power.Writes()
	driver := n.open()
	mustPrepare(n.t, driver, wanted)
	assertConsistent(n.t, n.disk, driver)
	if again := n.files()[ledger.CheckpointName]; again != checkpoint || n.power.Writes() != writes {
		n.t.Errorf("prepared again: %d more writes, checkpoint\n%s", n.power.Writes()-writes, again)
	}
	return driver
}

func TestAClaimHasItsCPUsFastAndQuiet(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	before, files := n.power.Values(), n.files()
	wanted := tunedClaim(claim("a", result("fast", "numa-1", 2), result("slow", "numa-1", 2), result("memory", "numa-2", 0)), fastAndQuiet, "fast", "memory")
	mustPrepare(t, driver, wanted)
	n.expectFiles(map[string]string{
		"cpufreq/policy4/scaling_governor": "performance", "cpufreq/policy5/scaling_min_freq": "3000000", "cpu4/power/pm_qos_resume_latency_us": "n/a",
		"cpufreq/policy6/scaling_governor": "powersave", "cpu6/power/pm_qos_resume_latency_us": "0",
		"proc/irq/24/smp_affinity_list": "0-3,6-7", "proc/irq/27/smp_affinity_list": "4-5", "proc/irq/28/smp_affinity_list": "0-3,6-7", "proc/irq/default_smp_affinity": "cf",
	})
	checkpoint := n.files()[ledger.CheckpointName] + n.files()[tuning.FirstName]
	for _, text := range []string{
		`"frequencies":[{"policies":"4-5","driver":"intel_pstate","before":{"governor":"powersave","energyPreference":"balance_performance","minKHz":800000,"maxKHz":3000000}`,
		`"want":{"governor":"performance","energyPreference":"performance","minKHz":3600000,"maxKHz":3600000},"got":{"governor":"performance","energyPreference":"performance","minKHz":3000000,"maxKHz":3000000}`,
		`"idle":[{"cpus":"4-5","before":"0","want":"n/a"}],"applied":true,"staying":[{"number":27,"name":"nvme0q1","why":"managed by the kernel"}]`,
		`"interrupts":{"default":"0-7","affinities":[{"cpus":"0-7","interrupts":[24]},{"cpus":"4-5","interrupts":[27]},{"cpus":"5","interrupts":[28]}]}`,
	} {
		if !strings.Contains(checkpoint, text) {
			t.Errorf("checkpoint %s has no %s", checkpoint, text)
		}
	}
	assertConsistent(t, n.disk, driver)
	status, err := json.Marshal(grantOf(driver, "uid-a").Shares[0].Status())
	for _, text := range []string{
		`"performance":{"asked":{"minFrequency":"max","governor":"performance","idleLatency":0,"interrupts":"away"}`,
		`"frequencies":[{"policies":"4-5","driver":"intel_pstate","governor":"performance","energyPreference":"performance","minFrequency":"3GHz","maxFrequency":"3GHz"}]`,
		`"interrupts":[{"number":27,"name":"nvme0q1","why":"managed by the kernel"}]`,
	} {
		if err != nil || !strings.Contains(string(status), text) {
			t.Errorf("status %s, %v has no %s", status, err, text)
		}
	}
	driver = n.prepareAgain(wanted)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expect(before)
	assertFiles(t, n.files(), files)
}

// A node that allows it, and claims that do not ask for it, cost nothing.
func TestClaimsThatLeaveCPUsAsTheyAreReadAndWriteNothing(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	*n.reads = 0
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	if err := driver.RepairPerformance(true); err != nil {
		t.Fatal(err)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	if *n.reads > 0 || n.power.Writes() > 0 {
		t.Errorf("%d files opened, %d writes, want none", *n.reads, n.power.Writes())
	}
}

// After a crash at any step, the next operation ends as it would without the crash.
func TestCrashWhileCPUsAreTunedHeals(t *testing.T) {
	wanted := tunedClaim(claim("a", result("r", "numa-1", 4)), fastAndQuiet)
	for what, next := range map[string]func(*powerNode) (*Driver, error){
		"prepared again": func(n *powerNode) (*Driver, error) {
			driver := n.open()
			_, _, err := driver.Prepare(wanted, nil)
			return driver, err
		},
		"unprepared": func(n *powerNode) (*Driver, error) { driver := n.open(); return driver, driver.Unprepare("uid-a") },
		"forgotten": func(n *powerNode) (*Driver, error) {
			n.power.Settle()
			driver, err := n.tryRead(n.config())
			if err == nil {
				_, err = driver.Recover(claims{"uid-a": nil}, nil)
			}
			return driver, err
		},
	} {
		for last := 0; ; last++ { // writes before the crash
			n := newPowerNode(t)
			before := n.power.Values()
			config, _ := n.dying(last)
			_, _, died := n.openWith(config).Prepare(wanted, nil)
			driver, err := next(n)
			if err != nil {
				t.Fatalf("%s after %d writes: %v", what, last, err)
			}
			assertConsistent(t, n.disk, driver)
			if what == "prepared again" {
				n.expectFiles(map[string]string{"cpufreq/policy7/scaling_governor": "performance", "cpu4/power/pm_qos_resume_latency_us": "n/a", "proc/irq/28/smp_affinity_list": "0-3"})
				if err := driver.Unprepare("uid-a"); err != nil {
					t.Fatal(err)
				}
			}
			if n.expect(before); t.Failed() {
				t.Fatalf("%s after %d writes", what, last)
			}
			if died == nil {
				break
			}
		}
	}
}

var errCrash = fmt.Errorf("crash")

// What the CPUs had in another boot is not what this boot has given them.
func TestNothingOfAnotherBootIsRestored(t *testing.T) {
	n := newPowerNode(t)
	wanted := tunedClaim(claim("a", result("r", "numa-1", 2)), fastAndQuiet)
	mustPrepare(t, n.open(), wanted)
	n.boot = "boot-2"
	values := n.power.Values() // as if the new boot had the same
	driver := n.open()
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expect(values)

	n = newPowerNode(t)
	mustPrepare(t, n.open(), wanted)
	n.boot, n.power = "boot-2", newPowerNode(t).power
	before := n.power.Values()
	driver = n.open()
	mustPrepare(t, driver, wanted)
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_governor": "performance", "proc/irq/28/smp_affinity_list": "0-3,6-7"})
	assertConsistent(t, n.disk, driver)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expect(before)
}

func TestAllocatedAnewAClaimGivesItsCPUsBack(t *testing.T) {
	n := newPowerNode(t)
	before, driver := n.power.Values(), n.open()
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 4)), fastAndQuiet))
	mustPrepare(t, driver, tunedClaim(claim("a", result("other", "numa-1", 2)), `"maxFrequency": "1GHz", "interrupts": "away"`))
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_governor": "powersave", "cpufreq/policy4/scaling_max_freq": "1000000", "cpufreq/policy6/scaling_min_freq": "800000", "proc/irq/28/smp_affinity_list": "0-3,6-7"})
	assertConsistent(t, n.disk, driver)
	mustPrepare(t, driver, claim("a", result("plain", "numa-1", 2)))
	n.expect(before)
	assertConsistent(t, n.disk, driver)
}

func TestWhatANodeDoesNotAllowOrHave(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	before, files := n.power.Values(), n.files()
	_, _, err := driver.Prepare(tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "ondemand"`), nil)
	if want := `request r: governor: "ondemand", cpus 4 with the frequency driver intel_pstate have performance, powersave`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	driver.config.Tuning.ClaimsTune = false
	_, _, err = driver.Prepare(tunedClaim(claim("a", result("r", "numa-1", 2)), fastAndQuiet), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "minFrequency: only a DeviceClass can change this on this node: performance.allow is class in its NodeConfig") {
		t.Errorf("error %v", err)
	}
	assertFiles(t, n.files(), files)
	n.expect(before)
	wanted := configured(claim("a", result("r", "numa-1", 2)), performanceOf(resourceapi.AllocationConfigSourceClass, fastAndQuiet))
	mustPrepare(t, driver, wanted)

	off := n.config()
	off.Tuning = nil // it is switched off while the claim has the CPUs
	driver = n.openWith(off)
	mustPrepare(t, driver, wanted)
	_, _, err = driver.Prepare(tunedClaim(claim("b", result("r", "numa-1", 2)), `"interrupts": "own"`), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "interrupts: claims change no frequencies, idle states and interrupts on this node: performance.allow is not set in its NodeConfig") {
		t.Errorf("error %v", err)
	}
	if err := driver.Unprepare("uid-a"); err == nil || !strings.Contains(err.Error(), "this node changes no frequencies, idle states and interrupts any more") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	if err := n.open().Unprepare("uid-a"); err != nil { // and on again
		t.Fatal(err)
	}
	n.expect(before)
}

func TestTwoClaimsKeepInterruptsAwayAndEndInAnyOrder(t *testing.T) {
	for _, first := range []types.UID{"uid-a", "uid-b"} {
		n := newPowerNode(t)
		before, driver := n.power.Values(), n.open()
		mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"interrupts": "away"`))
		mustPrepare(t, driver, tunedClaim(claim("b", result("r", "numa-1", 2)), `"interrupts": "away"`))
		n.expectFiles(map[string]string{"proc/irq/24/smp_affinity_list": "0-3", "proc/irq/28/smp_affinity_list": "0-3"})
		for _, uid := range []types.UID{first, "uid-a", "uid-b"} { // one of them twice
			if err := driver.Unprepare(uid); err != nil {
				t.Fatal(err)
			}
			assertConsistent(t, n.disk, driver)
		}
		n.expect(before)
	}
}

func TestNewInterruptsAndCPUsThatComeBackAreSeen(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), fastAndQuiet))
	n.power.Request(sysfs.Line{Number: 40, Name: "new", CPUs: "4"})
	n.power.SetOnline(5, false)
	driver.SetMachine(without(testMachine(), cpuset.New(5)))
	n.power.SetOnline(5, true)
	driver.SetMachine(testMachine())
	if err := driver.RepairPerformance(false); err != nil {
		t.Fatal(err)
	}
	n.expectFiles(map[string]string{"proc/irq/40/smp_affinity_list": "0-3,6-7", "cpufreq/policy5/scaling_governor": "performance", "cpufreq/policy5/scaling_min_freq": "3000000"})
	assertConsistent(t, n.disk, driver)
	*n.reads = 0
	if err := driver.RepairPerformance(false); err != nil || *n.reads > 1 {
		t.Errorf("%d files opened, %v, want the folder of interrupts only", *n.reads, err)
	}
	if err := n.power.Write("proc/irq/24/smp_affinity_list", "4-7"); err != nil {
		t.Fatal(err)
	}
	if err := driver.RepairPerformance(true); err != nil {
		t.Fatal(err)
	}
	n.expectFiles(map[string]string{"proc/irq/24/smp_affinity_list": "6-7"})
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expectFiles(map[string]string{"proc/irq/40/smp_affinity_list": "4", "cpufreq/policy5/scaling_governor": "powersave"})
}

// The claim's status says at any time which interrupts the kernel does not move, and an
// interrupt that had no room when the last claim ended has its first CPUs again later.
func TestInterruptsWithoutRoomMoveWhenThereIsSome(t *testing.T) {
	n := newPowerNode(t)
	driver, before := n.open(), n.power.Values()
	look := func() {
		t.Helper()
		if err := driver.RepairPerformance(true); err != nil {
			t.Fatal(err)
		}
	}
	expectStaying := func(want ...interrupts.Refusal) {
		t.Helper()
		if got := driver.Grants()[0].Shares[0].Zone().Performance.Staying; !slices.Equal(got, want) {
			t.Errorf("the claim has %v, want %v", got, want)
		}
		assertConsistent(t, n.disk, driver)
	}
	drive := interrupts.Refusal{Number: 27, Name: "nvme0q1", Why: interrupts.Managed}
	others := cpuset.New(0, 1, 2, 3, 6, 7)
	n.power.SetFull(others)
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"interrupts": "away"`))
	expectStaying(drive, interrupts.Refusal{Number: 28, Name: "xhci", Why: interrupts.NoVector})
	n.power.SetFull(cpuset.Set{})
	look()
	expectStaying(drive)
	checkpoint := n.files()[ledger.CheckpointName]
	if look(); n.files()[ledger.CheckpointName] != checkpoint {
		t.Error("nothing has changed, and the claim was recorded again")
	}
	n.power.Delay(28, "5")
	look()
	expectStaying(drive, interrupts.Refusal{Number: 28, Name: "xhci", Why: interrupts.Pending})

	n.power.SetFull(cpuset.New(5))
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expectFiles(map[string]string{"proc/irq/24/smp_affinity_list": "0-7", "proc/irq/28/smp_affinity_list": "0-3,6-7"})
	look()
	n.power.SetFull(cpuset.Set{})
	look()
	n.expect(before)

	mustPrepare(t, driver, tunedClaim(claim("b", result("r", "numa-1", 2)), `"interrupts": "away"`))
	n.power.SetFull(cpuset.New(5))
	if err := driver.Unprepare("uid-b"); err != nil {
		t.Fatal(err)
	}
	n.power.SetFull(cpuset.Set{})
	if err := n.power.Write("proc/irq/28/smp_affinity_list", "2"); err != nil { // another program
		t.Fatal(err)
	}
	look()
	n.expectFiles(map[string]string{"proc/irq/28/smp_affinity_list": "2"})
}

// The frequency driver of a node may change while a claim has CPUs, as with intel_pstate's
// status. What it had before means nothing to the new one.
func TestAClaimEndsAfterItsFrequencyDriverChanged(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), fastAndQuiet))
	n.power = sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.ACPICpufreq, Idle: "intel_idle"})
	driver, before := n.open(), n.power.Values()
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expect(before)
	if grants := driver.Grants(); len(grants) > 0 || strings.Contains(n.files()[ledger.CheckpointName], "uid-a") {
		t.Errorf("grants %v, checkpoint %s", grants, n.files()[ledger.CheckpointName])
	}
}

// They would be online again with what the claim wanted, so no other claim gets them.
func TestCPUsThatAreOfflineWhenTheirClaimEndsAreRestoredLater(t *testing.T) {
	n := newPowerNode(t)
	driver := n.open()
	before := n.power.Values()
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), fastAndQuiet))
	n.power.SetOnline(5, false)
	driver.SetMachine(without(testMachine(), cpuset.New(5)))
	var notRestored *NotRestoredError
	if err := driver.Unprepare("uid-a"); !errors.As(err, &notRestored) || !strings.Contains(err.Error(), "all of its CPUs are offline") {
		t.Fatalf("error %v", err)
	}
	if err := driver.Abandon("uid-a"); err != nil {
		t.Fatal(err)
	}
	observe := func() Report {
		t.Helper()
		report, err := driver.Observe(nil)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if report := observe(); len(report) != 1 || report[0].Outcome != Waiting {
		t.Errorf("report %v, want that the claim waits", report)
	}
	n.power.Delay(28, "4")
	if err := driver.RepairPerformance(true); err != nil {
		t.Error(err)
	}
	if _, there := n.files()[specName("uid-a")]; there {
		t.Error("a claim that was abandoned has a CDI spec again")
	}
	n.power.SetOnline(5, true)
	driver.SetMachine(testMachine())
	observe()
	n.expect(before)
	if grants := driver.Grants(); len(grants) > 0 {
		t.Errorf("grants %v, want none", grants)
	}
}

// Claims with random settings begin and end in any order while the daemon is killed and
// started again. After the last one, every file has its first value.
func TestRandomPerformance(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 2))
	fields := []string{
		`"minFrequency": "max"`, `"maxFrequency": "1GHz", "interrupts": "away"`, `"interrupts": "own"`, `"idleLatency": 0`, `"governor": "performance"`,
		`"energyPreference": "power", "idleLatency": 20, "interrupts": "away"`, fastAndQuiet,
		`"minUncoreFrequency": "2GHz"`, `"minUncoreFrequency": "1.25GHz", "minFrequency": "max"`, `"minUncoreFrequency": "max", "interrupts": "away"`,
	}
	sequences := 300
	if testing.Short() {
		sequences = 30
	}
	for sequence := range sequences {
		n := newDieNode(t)
		before, driver, held := n.power.Values(), n.open(), map[string]*resourceapi.ResourceClaim{}
		for range 2 + random.IntN(8) {
			name := []string{"a", "b", "c"}[random.IntN(3)]
			switch wanted := held[name]; {
			case random.IntN(4) == 0:
				driver = n.open()
			case wanted == nil:
				zone := fmt.Sprintf("numa-%d", random.IntN(2))
				wanted = tunedClaim(claim(name, result("r", zone, 2)), fields[random.IntN(len(fields))])
				steps := []step{}
				if wishes, err := driver.planner().wishes(wanted); err != nil {
					t.Fatal(err)
				} else if next, err := driver.planner().plan(wanted, nil, wishes); err == nil { // else the zone is full
					steps, held[name] = driver.applySteps(next.Grant), wanted
				}
				if killed := random.IntN(3) == 0; killed && len(steps) > 0 {
					if err := perform(steps[:random.IntN(len(steps))]); err != nil {
						t.Fatal(err)
					}
					driver = n.open()
				}
				if held[name] != nil {
					mustPrepare(t, driver, wanted)
				}
			default:
				if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
					t.Fatal(err)
				}
				delete(held, name)
			}
			assertConsistent(t, n.disk, driver)
		}
		for name := range maps.Keys(held) {
			if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
				t.Fatal(err)
			}
		}
		if n.expect(before); t.Failed() {
			t.Fatalf("sequence %d", sequence)
		}
	}
}
