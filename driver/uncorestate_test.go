package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// newDieNode returns a node of two packages with two dies each. A die has two cores with two
// threads, and a package is a NUMA node: die 1 of package 1 has CPUs 12-15.
func newDieNode(t testing.TB) *powerNode {
	t.Helper()
	n := newPowerNode(t)
	n.power = sysfs.NewPowerHost(sysfs.Power{
		CPUs: 16, Driver: sysfs.IntelPstate, Idle: "intel_idle", LimitKHz: 3_000_000, Uncore: sysfs.Uncore{Packages: 2, Dies: 2},
		Lines: []sysfs.Line{{Number: 24, Name: "virtio0", CPUs: "0-15"}, {Number: 28, Name: "xhci", CPUs: "5"}},
	})
	n.machine = dieMachine()
	return n
}

func dieMachine() numa.Machine {
	machine := testMachine()
	machine.Online, machine.Cores = cpuset.Set{}, nil
	for i := range 8 {
		cpus := cpuset.New(2*i, 2*i+1)
		machine.Online = machine.Online.Union(cpus)
		machine.Cores = append(machine.Cores, numa.Core{Socket: new(i / 4), Die: new(i / 2 % 2), ID: new(i), Zone: i / 4, L3: new(i / 4), CPUs: cpus})
	}
	for zone := range 2 {
		cpus := cpuset.New()
		for cpu := range 8 {
			cpus.Insert(8*zone + cpu)
		}
		machine.Zones[zone].CPUs, machine.L3s[zone].CPUs = cpus, cpus
	}
	return machine
}

// fastMesh returns a claim with a minUncoreFrequency.
func fastMesh(name, zone string, cpus int64, frequency string) *resourceapi.ResourceClaim {
	return tunedClaim(claim(name, result("r", zone, cpus)), fmt.Sprintf(`"minUncoreFrequency": %q`, frequency))
}

// expectUncore compares the lowest frequency in MHz of the dies: those of package 0, then
// those of package 1.
func (n *powerNode) expectUncore(what string, want ...int) {
	n.t.Helper()
	dies, err := numa.ReadUncoreDies(n.power)
	if err != nil {
		n.t.Fatal(err)
	}
	var got []int
	for _, die := range dies {
		got = append(got, die.MinKHz/1000)
	}
	if !slices.Equal(got, want) {
		n.t.Errorf("%s: dies have at least %v MHz, want %v", what, got, want)
	}
}

func (n *powerNode) setUncore(socket, die int, kHz string) {
	n.t.Helper()
	if err := n.power.Write(numa.UncoreMinFile(socket, die), kHz); err != nil {
		n.t.Fatal(err)
	}
}

func unprepare(t testing.TB, driver *Driver, uid types.UID) {
	t.Helper()
	if err := driver.Unprepare(uid); err != nil {
		t.Fatal(err)
	}
}

func TestADieHasTheHighestDemandOfItsClaimsInWhateverOrderTheyEnd(t *testing.T) {
	for first, left := range map[types.UID]int{"uid-a": 1200, "uid-b": 2000} {
		n := newDieNode(t)
		n.setUncore(1, 0, "900000")
		before, driver := n.power.Values(), n.open()
		files := n.files()
		mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
		mustPrepare(t, driver, fastMesh("b", "numa-1", 2, "1.15GHz"))
		n.expectUncore("both hold the die", 800, 800, 2000, 800)
		assertConsistent(t, n.disk, driver)
		mustPrepare(t, driver, fastMesh("c", "numa-1", 4, "max"))
		n.expectUncore("and another the next die", 800, 800, 2000, 2400)
		for i, uid := range []types.UID{first, first, "uid-c", "uid-a", "uid-b"} { // one of them twice
			unprepare(t, driver, uid)
			if i == 1 {
				n.expectUncore("after "+string(first), 800, 800, left, 2400)
			}
			assertConsistent(t, n.disk, driver)
			driver = n.open()
		}
		n.expect(before)
		assertFiles(t, n.files(), files)
	}
}

func TestAClaimOfSeveralDiesAsksOfEach(t *testing.T) {
	n := newDieNode(t)
	before, driver := n.power.Values(), n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 8, "1.5GHz"))
	n.expectUncore("a", 800, 800, 1500, 1500)
	unprepare(t, driver, "uid-a")
	n.expect(before)
}

func TestTheStatusSaysWhatWasAskedAndGot(t *testing.T) {
	n := newDieNode(t)
	driver := n.open()
	if err := n.power.Write("sys/devices/system/cpu/intel_uncore_frequency/package_01_die_00/max_freq_khz", "1800000"); err != nil {
		t.Fatal(err)
	}
	wanted := fastMesh("a", "numa-1", 2, "max")
	mustPrepare(t, driver, wanted)
	n.expectUncore("never above the highest frequency that is set", 800, 800, 1800, 800)
	status, err := json.Marshal(grantOf(driver, "uid-a").Shares[0].Status())
	if want := `"performance":{"asked":{"minUncoreFrequency":"max"},"uncore":[{"package":1,"die":0,"minFrequency":"1.8GHz"}]}`; err != nil || !strings.Contains(string(status), want) {
		t.Errorf("status %s, %v, want %s", status, err, want)
	}
	checkpoint := n.files()[ledger.CheckpointName] + n.files()[tuning.FirstName]
	for _, text := range []string{
		`"uncore":[{"package":1,"die":0,"wantKHz":2400000,"gotKHz":1800000}],"applied":true`,
		`"uncore":[{"package":1,"die":0,"firstKHz":800000,"wantKHz":1800000,"gotKHz":1800000}]`,
	} {
		if !strings.Contains(checkpoint, text) {
			t.Errorf("checkpoint %s has no %s", checkpoint, text)
		}
	}
	n.prepareAgain(wanted)
}

func TestTheUncoreThatANodeDoesNotHaveIsRefused(t *testing.T) {
	n := newDieNode(t)
	driver := n.open()
	before, files := n.power.Values(), n.files()
	none := newPowerNode(t)
	for want, row := range map[string]struct {
		driver *Driver
		claim  *resourceapi.ResourceClaim
	}{
		`request r: minUncoreFrequency: "3GHz" is 3GHz, die 0 of package 1 has 800MHz to 2.4GHz`:                                                    {driver, fastMesh("a", "numa-1", 2, "3GHz")},
		`request r: minUncoreFrequency: "700MHz" is 700MHz, die 0 of package 1 has 800MHz to 2.4GHz`:                                                {driver, fastMesh("a", "numa-1", 2, "700MHz")},
		"request r: minUncoreFrequency: the node has no uncore driver: sys/devices/system/cpu/intel_uncore_frequency has no dies":                   {none.open(), fastMesh("a", "numa-1", 2, "2GHz")},
		`status.allocation.devices.config[0].opaque.parameters: minUncoreFrequency: "base", want a frequency such as 2.4GHz or 800MHz, or min, max`: {driver, fastMesh("a", "numa-1", 2, "base")},
	} {
		if _, _, err := row.driver.Prepare(row.claim, nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	driver.config.Tuning.ClaimsTune = false
	_, _, err := driver.Prepare(fastMesh("a", "numa-1", 2, "2GHz"), nil)
	if err == nil || !strings.HasSuffix(err.Error(), "minUncoreFrequency: only a DeviceClass can change this on this node: performance.allow is class in its NodeConfig") {
		t.Errorf("error %v", err)
	}
	n.expect(before)
	assertFiles(t, n.files(), files)
}

func TestWhatAnotherProgramWritesToADieStays(t *testing.T) {
	n := newDieNode(t)
	driver := n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	n.setUncore(1, 0, "1400000")
	unprepare(t, driver, "uid-a")
	n.expectUncore("after the only claim", 800, 800, 1400, 800)
	assertConsistent(t, n.disk, driver)

	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	n.setUncore(1, 0, "1600000")
	mustPrepare(t, driver, fastMesh("b", "numa-1", 2, "2.2GHz"))
	n.expectUncore("the next claim begins", 800, 800, 2200, 800)
	unprepare(t, driver, "uid-a")
	unprepare(t, driver, "uid-b")
	n.expectUncore("after all claims", 800, 800, 1600, 800)
	assertConsistent(t, n.disk, driver)
}

// What a die had in another boot is not what this boot has given it.
func TestTheUncoreOfAnotherBootIsNotRestored(t *testing.T) {
	n := newDieNode(t)
	wanted := fastMesh("a", "numa-1", 2, "2GHz")
	mustPrepare(t, n.open(), wanted)
	n.boot = "boot-2"
	values := n.power.Values() // as if the new boot had the same
	driver := n.open()
	unprepare(t, driver, "uid-a")
	n.expect(values)
	assertConsistent(t, n.disk, driver)

	n = newDieNode(t)
	mustPrepare(t, n.open(), wanted)
	n.boot, n.power = "boot-2", newDieNode(t).power
	n.setUncore(1, 0, "1000000")
	before := n.power.Values()
	driver = n.open()
	mustPrepare(t, driver, wanted)
	n.expectUncore("prepared again", 800, 800, 2000, 800)
	assertConsistent(t, n.disk, driver)
	unprepare(t, driver, "uid-a")
	n.expect(before)
}

func TestClaimsThatAreForgottenGiveTheUncoreBack(t *testing.T) {
	n := newDieNode(t)
	before, driver := n.power.Values(), n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	mustPrepare(t, driver, fastMesh("b", "numa-1", 2, "max"))
	kept := fastMesh("c", "numa-1", 4, "1.2GHz")
	mustPrepare(t, driver, kept)
	n.expectUncore("all three", 800, 800, 2400, 1200)
	driver, err := n.tryRead(n.config())
	if err == nil {
		_, err = driver.Recover(claims{"uid-a": nil, "uid-b": nil, "uid-c": kept}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	n.expectUncore("after the daemon was away", 800, 800, 800, 1200)
	assertConsistent(t, n.disk, driver)
	unprepare(t, driver, "uid-c")
	n.expect(before)
}

// The folder of a die goes with its last CPU. What the die had first stays on record until
// it is back.
func TestADieThatIsOfflineIsRestoredLater(t *testing.T) {
	n := newDieNode(t)
	before, driver := n.power.Values(), n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	mustPrepare(t, driver, fastMesh("b", "numa-0", 2, "2GHz"))
	n.power.SetDieOnline(1, 0, false)
	driver.SetMachine(without(dieMachine(), cpuset.New(8, 9, 10, 11)))
	unprepare(t, driver, "uid-a")
	unprepare(t, driver, "uid-b")
	n.expectUncore("offline", 800, 800, 800)
	assertConsistent(t, n.disk, driver)
	n.power.SetDieOnline(1, 0, true)
	driver.SetMachine(dieMachine())
	n.expectUncore("online again", 800, 800, 2000, 800)
	n.settle(driver)
	n.expect(before)
	assertConsistent(t, n.disk, driver)
}

func TestADieThatComesOnlineWhileTheDaemonIsAwayIsRestored(t *testing.T) {
	n := newDieNode(t)
	before, driver := n.power.Values(), n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	n.power.SetDieOnline(1, 0, false)
	driver.SetMachine(without(dieMachine(), cpuset.New(8, 9, 10, 11)))
	unprepare(t, driver, "uid-a")
	n.power.SetDieOnline(1, 0, true)
	driver = n.open()
	n.expectUncore("online again", 800, 800, 2000, 800)
	n.settle(driver)
	n.expect(before)
	assertConsistent(t, n.disk, driver)
	*n.reads = 0
	n.settle(driver)
	if *n.reads > 0 {
		t.Errorf("%d files opened at the next look, want none", *n.reads)
	}
}

func TestADieThatIsOnlineAgainHasWhatClaimsWant(t *testing.T) {
	n := newDieNode(t)
	driver := n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	driver.SetMachine(without(dieMachine(), cpuset.New(8, 9, 10, 11)))
	n.setUncore(1, 0, "800000") // it has lost the value
	driver.SetMachine(dieMachine())
	n.settle(driver)
	n.expectUncore("online again", 800, 800, 2000, 800)
	assertConsistent(t, n.disk, driver)
}

// Claims that do not ask cost nothing, whether or not there are dies.
func TestClaimsWithoutTheUncoreReadAndWriteNothing(t *testing.T) {
	n := newDieNode(t)
	driver := n.open()
	*n.reads = 0
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	driver.SetMachine(without(dieMachine(), cpuset.New(8, 9, 10, 11)))
	driver.SetMachine(dieMachine())
	if err := driver.RepairPerformance(true); err != nil {
		t.Fatal(err)
	}
	unprepare(t, driver, "uid-a")
	if *n.reads > 0 || n.power.Writes() > 0 {
		t.Errorf("%d files opened, %d writes, want none", *n.reads, n.power.Writes())
	}

	mustPrepare(t, driver, fastMesh("b", "numa-1", 2, "2GHz"))
	*n.reads = 0
	writes := n.power.Writes()
	if err := driver.RepairPerformance(true); err != nil || *n.reads > 0 || n.power.Writes() > writes {
		t.Errorf("a look at a claim that asks: %d files opened, %d writes, %v, want none", *n.reads, n.power.Writes()-writes, err)
	}
}

// A daemon that dies before or after any write to a die leaves what the next one needs.
func TestCrashWhileTheUncoreIsSetHeals(t *testing.T) {
	held, wanted := fastMesh("a", "numa-1", 2, "1.2GHz"), fastMesh("b", "numa-1", 6, "2.2GHz")
	prepare := func(driver *Driver) error { _, _, err := driver.Prepare(wanted, nil); return err }
	for what, change := range map[string]func(*Driver) error{"begins": prepare, "ends": func(driver *Driver) error { return driver.Unprepare("uid-b") }} {
		for _, limit := range []int{0, 1_900_000} {
			for _, written := range []bool{false, true} { // whether the last write is done
				for last := 0; ; last++ { // writes before the crash
					n := newDieNode(t)
					n.power = sysfs.NewPowerHost(sysfs.Power{CPUs: 16, Uncore: sysfs.Uncore{Packages: 2, Dies: 2, LimitKHz: limit}})
					before, driver := n.power.Values(), n.open()
					mustPrepare(t, driver, held)
					if what == "ends" {
						mustPrepare(t, driver, wanted)
					}
					left := last
					config := n.config()
					config.Tuning.Uncore = uncore.New(n.power, func(name, text string) error {
						if left--; left >= 0 {
							return n.power.Write(name, text)
						}
						if written {
							_ = n.power.Write(name, text)
						}
						return errCrash
					})
					died := change(n.openWith(config))
					driver = n.open()
					if what == "begins" {
						if err := prepare(driver); err != nil {
							t.Fatal(err)
						}
						most := 2200
						if limit > 0 {
							most = limit / 1000
						}
						n.expectUncore("prepared again", 800, 800, most, most)
						assertConsistent(t, n.disk, driver)
					}
					unprepare(t, driver, "uid-b")
					n.expectUncore("one has ended", 800, 800, 1200, 800)
					assertConsistent(t, n.disk, driver)
					unprepare(t, driver, "uid-a")
					assertConsistent(t, n.disk, driver)
					if n.expect(before); t.Failed() {
						t.Fatalf("%s after %d writes, limit %d, written %t", what, last, limit, written)
					}
					if !errors.Is(died, errCrash) {
						break
					}
				}
			}
		}
	}
}

// A node whose NodeConfig forbids it meanwhile writes nothing, and says why.
func TestTheUncoreIsRestoredWhenTheNodeAllowsItAgain(t *testing.T) {
	n := newDieNode(t)
	before, driver := n.power.Values(), n.open()
	mustPrepare(t, driver, fastMesh("a", "numa-1", 2, "2GHz"))
	off := n.config()
	off.Tuning = nil
	driver = n.openWith(off)
	if err := driver.Unprepare("uid-a"); err == nil || !strings.Contains(err.Error(), "this node changes no frequencies, idle states and interrupts any more") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	unprepare(t, n.open(), "uid-a")
	n.expect(before)
}
