package driver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// slow and lazy are defaults of a NodeConfig.
func slow() deviceclasses.PerformanceSettings {
	return deviceclasses.PerformanceSettings{MaxFrequency: "1GHz", EnergyPreference: deviceclasses.EnergyPower}
}

func lazy() deviceclasses.PerformanceSettings {
	latency := 500
	return deviceclasses.PerformanceSettings{MinFrequency: "base", Governor: "performance", IdleLatency: &latency}
}

// start starts the daemon with a default.
func (n *powerNode) start(settings deviceclasses.PerformanceSettings, reserved bool) *Driver {
	n.t.Helper()
	n.power.Settle()
	config := n.config()
	config.Tuning.Default, config.Tuning.DefaultReserved = settings, reserved
	driver := n.openWith(config)
	n.settle(driver)
	return driver
}

// settle lets the daemon look at its CPUs once.
func (n *powerNode) settle(driver *Driver) {
	n.t.Helper()
	if err := driver.RepairPerformance(false); err != nil {
		n.t.Fatal(err)
	}
}

func TestCPUsHaveTheDefaultUntilItIsTakenOutOfTheConfiguration(t *testing.T) {
	n := newPowerNode(t)
	before := n.power.Values()
	driver := n.start(slow(), false)
	reserved, _ := driver.config.Reserved.First()
	n.expectFiles(map[string]string{
		fmt.Sprintf("cpufreq/policy%d/scaling_max_freq", reserved): "3000000",
		"cpufreq/policy5/scaling_max_freq":                         "1000000", "cpufreq/policy5/energy_performance_preference": "power",
	})
	assertConsistent(t, n.disk, driver)
	writes := n.power.Writes()
	*n.reads = 0
	n.settle(driver)
	if *n.reads > 0 || n.power.Writes() != writes {
		t.Errorf("%d files opened, %d writes, want none", *n.reads, n.power.Writes()-writes)
	}
	driver = n.start(slow(), true)
	n.expectFiles(map[string]string{fmt.Sprintf("cpufreq/policy%d/scaling_max_freq", reserved): "1000000"})
	assertConsistent(t, n.disk, driver)
	n.start(slow(), false) // the same, but not for reserved CPUs any more
	n.expectFiles(map[string]string{fmt.Sprintf("cpufreq/policy%d/scaling_max_freq", reserved): "3000000", "cpufreq/policy5/scaling_max_freq": "1000000"})
	driver = n.start(lazy(), false)
	n.expectFiles(map[string]string{
		fmt.Sprintf("cpufreq/policy%d/scaling_max_freq", reserved): "3000000", fmt.Sprintf("cpu%d/power/pm_qos_resume_latency_us", reserved): "0",
		"cpufreq/policy5/scaling_max_freq": "3000000", "cpufreq/policy5/scaling_min_freq": "2400000", "cpufreq/policy5/scaling_governor": "performance",
		"cpu5/power/pm_qos_resume_latency_us": "500",
	})
	assertConsistent(t, n.disk, driver)
	driver = n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(before)
	assertConsistent(t, n.disk, driver)
	if text := n.files()[tuning.FirstName]; strings.Contains(text, `"defaults"`) {
		t.Errorf("first values %s still has defaults", text)
	}
}

// A claim starts from the default, and gives it back. One that asks for nothing has it.
func TestClaimsStartFromTheDefault(t *testing.T) {
	n := newPowerNode(t)
	before, driver := n.power.Values(), n.start(slow(), false)
	wanted := tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance", "minFrequency": "min"`)
	mustPrepare(t, driver, wanted)
	mustPrepare(t, driver, claim("plain", result("r", "numa-1", 2)))
	n.settle(driver)
	n.expectFiles(map[string]string{
		"cpufreq/policy4/scaling_governor": "performance", "cpufreq/policy4/scaling_max_freq": "1000000",
		"cpufreq/policy6/scaling_governor": "powersave", "cpufreq/policy6/scaling_max_freq": "1000000",
	})
	assertConsistent(t, n.disk, driver)
	driver = n.start(lazy(), false) // the claim that has changed its CPUs keeps them as they are
	n.expectFiles(map[string]string{
		"cpufreq/policy4/scaling_max_freq": "1000000", "cpu4/power/pm_qos_resume_latency_us": "0",
		"cpufreq/policy6/scaling_max_freq": "3000000", "cpu6/power/pm_qos_resume_latency_us": "500",
	})
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_governor": "powersave", "cpufreq/policy4/scaling_max_freq": "1000000"})
	n.settle(driver)
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_min_freq": "2400000", "cpu4/power/pm_qos_resume_latency_us": "500"})
	assertConsistent(t, n.disk, driver)
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(before)
}

// Another default reaches CPUs between two claims that follow each other at once.
func TestTheNextClaimStartsFromTheNewDefault(t *testing.T) {
	n := newPowerNode(t)
	before := n.power.Values()
	mustPrepare(t, n.start(slow(), false), tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance"`))
	driver := n.start(lazy(), false)
	unprepare(t, driver, "uid-a")
	mustPrepare(t, driver, tunedClaim(claim("b", result("r", "numa-1", 2)), `"minFrequency": "max"`))
	n.expectFiles(map[string]string{
		"cpufreq/policy4/scaling_max_freq": "3000000", "cpufreq/policy4/scaling_governor": "performance", "cpu4/power/pm_qos_resume_latency_us": "500",
	})
	assertConsistent(t, n.disk, driver)
	unprepare(t, driver, "uid-b")
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(before)
}

// A CPU that is offline keeps its policy from nothing, and has its part when it is online.
func TestTheDefaultOfAPolicyWithAnOfflineCPU(t *testing.T) {
	n := newPowerNode(t)
	n.power = sysfs.NewPowerHost(sysfs.Power{CPUs: 8, PerPolicy: 2, Driver: sysfs.IntelPstate, Idle: "intel_idle"})
	before, machine := n.power.Values(), n.machine
	n.power.SetCPUOnline(5, false)
	n.machine = without(machine, cpuset.New(5))
	driver := n.start(lazy(), true)
	n.expectFiles(map[string]string{
		"cpufreq/policy4/scaling_min_freq": "2400000", "cpu4/power/pm_qos_resume_latency_us": "500", "cpu5/power/pm_qos_resume_latency_us": "0",
	})
	n.power.SetCPUOnline(5, true)
	driver.SetMachine(machine)
	n.settle(driver)
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_min_freq": "2400000", "cpu5/power/pm_qos_resume_latency_us": "500"})
	n.machine = machine
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(before)
}

// After another boot, claims start from the default again, and nothing older is restored.
func TestTheDefaultOfAnotherBoot(t *testing.T) {
	n := newPowerNode(t)
	wanted := tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance"`)
	mustPrepare(t, n.start(slow(), false), wanted)
	n.boot, n.power = "boot-2", newPowerNode(t).power
	before := n.power.Values()
	driver := n.start(slow(), false)
	mustPrepare(t, driver, wanted)
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_governor": "performance", "cpufreq/policy4/scaling_max_freq": "1000000"})
	assertConsistent(t, n.disk, driver)
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(before)
	n.start(slow(), false)
	values := n.power.Values()
	n.boot = "boot-3" // as if it had the same
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(values)
}

// The values of another program stay, and CPUs that are offline are restored later.
func TestTheDefaultIsTakenBackOnlyWhereItStillIs(t *testing.T) {
	n := newPowerNode(t)
	n.start(slow(), false)
	if err := n.power.Write("sys/devices/system/cpu/cpufreq/policy6/scaling_max_freq", "2000000"); err != nil {
		t.Fatal(err)
	}
	n.power.SetOnline(5, false)
	config := n.config()
	n.power.Settle()
	machine := testMachine()
	n.machine = without(machine, cpuset.New(5))
	driver := n.openWith(config)
	n.settle(driver)
	n.expectFiles(map[string]string{
		"cpufreq/policy4/scaling_max_freq": "3000000", "cpufreq/policy5/scaling_max_freq": "1000000",
		"cpufreq/policy6/scaling_max_freq": "2000000", "cpufreq/policy6/energy_performance_preference": "balance_performance",
	})
	assertConsistent(t, n.disk, driver)
	n.power.SetOnline(5, true)
	driver.SetMachine(machine)
	n.settle(driver)
	n.expectFiles(map[string]string{"cpufreq/policy5/scaling_max_freq": "3000000"})
	assertConsistent(t, n.disk, driver)
}

// A CPU that comes online has lost its default, and gets it as soon as the kernel allows that.
func TestTheDefaultComesBackAfterAnError(t *testing.T) {
	n := newPowerNode(t)
	config := n.config()
	config.Tuning.Default = slow()
	refuses := false
	config.Tuning.Frequencies = cpufreq.New(config.Machine, func(name, text string) error {
		if refuses {
			return errCrash
		}
		return n.power.Write(name, text)
	})
	driver := n.openWith(config)
	n.settle(driver)
	machine := driver.Machine()
	driver.SetMachine(without(machine, cpuset.New(5)))
	n.settle(driver)
	const limit = "cpufreq/policy5/scaling_max_freq"
	if err := n.power.Write("sys/devices/system/cpu/"+limit, "3000000"); err != nil {
		t.Fatal(err)
	}
	n.power.Settle()
	driver.SetMachine(machine)
	refuses = true
	if err := driver.RepairPerformance(false); err == nil {
		t.Error("no error of a kernel that refuses each write")
	}
	refuses = false
	n.settle(driver)
	n.expectFiles(map[string]string{limit: "1000000"})
}

// What the node cannot have is an error of each look, and claims are prepared nevertheless.
func TestADefaultThatTheNodeDoesNotHave(t *testing.T) {
	n := newPowerNode(t)
	before := n.power.Values()
	config := n.config()
	config.Tuning.Default = deviceclasses.PerformanceSettings{Governor: "ondemand"}
	config.Tuning.OnlyDefault = true
	driver := n.openWith(config)
	for range 2 {
		if err := driver.RepairPerformance(false); err == nil || !strings.HasPrefix(err.Error(), `performance.default.governor: "ondemand", cpus `) {
			t.Errorf("error %v", err)
		}
	}
	n.expect(before)
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	_, _, err := driver.Prepare(tunedClaim(claim("b", result("r", "numa-1", 2)), fastAndQuiet), nil)
	if err == nil || !strings.Contains(err.Error(), "performance.allow is not set in its NodeConfig") {
		t.Errorf("error %v", err)
	}

	*n.reads = 0
	if err := driver.RepairPerformance(false); err == nil || *n.reads > 1 {
		t.Errorf("error %v, %d files opened, want the folder of interrupts only", err, *n.reads)
	}

	n = newPowerNode(t)
	n.start(slow(), false)
	config = n.config()
	config.Tuning = nil
	if err := n.openWith(config).RepairPerformance(false); err == nil || !strings.Contains(err.Error(), "this node changes no frequencies, idle states and interrupts any more") {
		t.Errorf("error %v", err)
	}
}

// CPUs that came online have what their claim wants once, also while the default is unmet: what
// another program writes then stays.
func TestAnUnmetDefaultDoesNotKeepClaimsBusy(t *testing.T) {
	n := newPowerNode(t)
	config := n.config()
	config.Tuning.Default = deviceclasses.PerformanceSettings{Governor: "ondemand"}
	driver := n.openWith(config)
	look := func(all bool) {
		t.Helper()
		if err := driver.RepairPerformance(all); err == nil || !strings.Contains(err.Error(), "ondemand") {
			t.Errorf("error %v, want that the default is unmet", err)
		}
	}
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"minFrequency": "max"`))
	machine := driver.Machine()
	driver.SetMachine(without(machine, cpuset.New(5)))
	look(false)
	for _, policy := range []string{"4", "5"} { // 5 has lost it, and another program has changed 4
		if err := n.power.Write("sys/devices/system/cpu/cpufreq/policy"+policy+"/scaling_min_freq", "1000000"); err != nil {
			t.Fatal(err)
		}
	}
	n.power.Settle()
	driver.SetMachine(machine)
	look(false)
	n.expectFiles(map[string]string{"cpufreq/policy4/scaling_min_freq": "1000000", "cpufreq/policy5/scaling_min_freq": "3000000"})
	if err := n.power.Write("sys/devices/system/cpu/cpufreq/policy5/scaling_min_freq", "1000000"); err != nil {
		t.Fatal(err)
	}
	look(false)
	look(true)
	n.expectFiles(map[string]string{"cpufreq/policy5/scaling_min_freq": "1000000"})
}

// After a crash at any write, the next daemon ends as it would without the crash.
func TestCrashWhileADefaultIsSetOrTakenBackHeals(t *testing.T) {
	for what, change := range map[string]struct {
		from, to deviceclasses.PerformanceSettings
	}{
		"set": {to: slow()}, "changed": {slow(), lazy()}, "taken": {from: lazy()},
	} {
		for last := 0; ; last++ { // writes before the crash
			n := newPowerNode(t)
			before := n.power.Values()
			driver := n.start(change.from, false)
			mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"minFrequency": "min", "idleLatency": 20`))
			held := n.power.Values()
			config, left := n.dying(last)
			config.Tuning.Default = change.to
			n.openWith(config)
			died := *left < 0
			driver = n.start(change.to, false)
			assertConsistent(t, n.disk, driver)
			now := n.power.Values()
			for name, text := range held { // the claim has noticed nothing
				if strings.Contains(name, "policy4/") && now[name] != text {
					t.Errorf("%s has %q, want %q", name, now[name], text)
				}
			}
			if err := driver.Unprepare("uid-a"); err != nil {
				t.Fatal(err)
			}
			n.settle(driver)
			direct := newPowerNode(t)
			direct.start(change.to, false)
			n.expect(direct.power.Values())
			n.start(deviceclasses.PerformanceSettings{}, false)
			if n.expect(before); t.Failed() {
				t.Fatalf("%s after %d writes", what, last)
			}
			if !died {
				break
			}
		}
	}
}

// Claims begin and end while the default changes and the daemon is killed. After the last
// claim and without a default, every file has its first value.
func TestRandomDefaults(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 5))
	fields := []string{`"minFrequency": "max"`, `"maxFrequency": "1GHz", "interrupts": "away"`, `"idleLatency": 0`, `"governor": "performance"`, fastAndQuiet}
	defaults := []deviceclasses.PerformanceSettings{{}, slow(), lazy(), {Governor: "performance"}, {MinFrequency: "max"}}
	sequences := 300
	if testing.Short() {
		sequences = 30
	}
	for sequence := range sequences {
		n := newPowerNode(t)
		before, held := n.power.Values(), map[string]*resourceapi.ResourceClaim{}
		driver := n.start(defaults[random.IntN(len(defaults))], random.IntN(2) == 0)
		for range 2 + random.IntN(10) {
			name := []string{"a", "b", "c"}[random.IntN(3)]
			switch random.IntN(4) {
			case 0: // the daemon dies while it changes the default
				config, _ := n.dying(random.IntN(30))
				config.Tuning.Default, config.Tuning.DefaultReserved = defaults[random.IntN(len(defaults))], random.IntN(2) == 0
				n.power.Settle()
				n.openWith(config)
				driver = n.start(defaults[random.IntN(len(defaults))], random.IntN(2) == 0)
			case 1:
				if held[name] == nil {
					continue
				}
				if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
					t.Fatal(err)
				}
				delete(held, name)
			default:
				wanted := claim(name, result("r", fmt.Sprintf("numa-%d", random.IntN(2)), 2))
				if random.IntN(4) > 0 {
					wanted = tunedClaim(wanted, fields[random.IntN(len(fields))])
				}
				if held[name] != nil {
					continue
				}
				if _, _, err := driver.Prepare(wanted, nil); err == nil { // else the zone is full, or the claim conflicts with the default
					held[name] = wanted
				}
			}
			assertConsistent(t, n.disk, driver)
		}
		for name := range maps.Keys(held) {
			if err := driver.Unprepare(types.UID("uid-" + name)); err != nil {
				t.Fatal(err)
			}
		}
		driver = n.start(deviceclasses.PerformanceSettings{}, false)
		assertConsistent(t, n.disk, driver)
		if n.expect(before); t.Failed() || n.power.Crossed() {
			t.Fatalf("sequence %d", sequence)
		}
	}
}
