package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// These tests change a real kernel: that of the node of make e2e-power, in which they run as
// a program of their own. Its CPUs 4-7 have 1, 2 and 3 GHz each.
//
//	CGO_ENABLED=0 go test -c -o driver.test ./driver
//	NUMA_POWER_ROOT=/ ./driver.test -test.run ^TestKernel

// realNode is a disk with a kernel that changes frequencies, idle states and interrupts.
type realNode struct {
	disk
	root string
}

func newRealNode(t *testing.T) *realNode {
	t.Helper()
	root := os.Getenv("NUMA_POWER_ROOT")
	if root == "" {
		t.Skip("NUMA_POWER_ROOT names no root of a kernel; it runs in the node of make e2e-power")
	}
	return &realNode{newDisk(t), root}
}

// openUntil returns a driver that dies at a write after some writes; -1 for never.
func (n *realNode) openUntil(writes int) *Driver {
	n.t.Helper()
	write := func(name, text string) error {
		if writes == 0 {
			return errCrash
		}
		writes--
		return kernelfs.Write(n.root, name, text)
	}
	config := testConfig()
	config.Machine = kernelfs.Dir(n.root)
	config.Tuning = &tuning.Config{Frequencies: cpufreq.New(config.Machine, write), Interrupts: interrupts.New(config.Machine, write), Uncore: uncore.New(config.Machine, write), ClaimsTune: true}
	return n.openWith(config)
}

// cpuFile is a file of a CPU.
func cpuFile(cpu int, file string) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpu%d/%s", cpu, file)
}

// values returns the content of the files that claims change.
func (n *realNode) values() map[string]string {
	n.t.Helper()
	kernel, all := os.DirFS(n.root), map[string]string{}
	names := []string{"proc/irq/default_smp_affinity"}
	for cpu := range 8 {
		for _, file := range []string{"cpufreq/scaling_governor", "cpufreq/scaling_min_freq", "cpufreq/scaling_max_freq", "power/pm_qos_resume_latency_us"} {
			names = append(names, cpuFile(cpu, file))
		}
	}
	lines, err := fs.Glob(kernel, "proc/irq/[0-9]*/smp_affinity_list")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, name := range append(names, lines...) {
		text, err := fs.ReadFile(kernel, name)
		if err != nil {
			n.t.Fatal(err)
		}
		all[name] = strings.TrimSpace(string(text))
	}
	return all
}

func (n *realNode) write(name, text string) {
	n.t.Helper()
	if err := kernelfs.Write(n.root, name, text); err != nil {
		n.t.Fatal(err)
	}
}

// expect compares all files.
func (n *realNode) expect(want map[string]string) {
	n.t.Helper()
	for name, text := range n.values() {
		if text != want[name] {
			n.t.Errorf("%s has %q, want %q", name, text, want[name])
		}
	}
}

// expectCPUs compares governor, lowest and highest frequency and limit of some CPUs.
func (n *realNode) expectCPUs(want string, cpus ...int) {
	n.t.Helper()
	values := n.values()
	for _, cpu := range cpus {
		got := fmt.Sprint(values[cpuFile(cpu, "cpufreq/scaling_governor")], " ", values[cpuFile(cpu, "cpufreq/scaling_min_freq")], " ",
			values[cpuFile(cpu, "cpufreq/scaling_max_freq")], " ", values[cpuFile(cpu, "power/pm_qos_resume_latency_us")])
		if got != want {
			n.t.Errorf("cpu %d has %q, want %q", cpu, got, want)
		}
	}
}

func (n *realNode) unprepare(driver *Driver, uids ...types.UID) {
	n.t.Helper()
	for _, uid := range uids {
		if err := driver.Unprepare(uid); err != nil {
			n.t.Fatal(err)
		}
	}
}

func TestKernelGivesClaimsWhatTheyAskAndTakesItBack(t *testing.T) {
	n := newRealNode(t)
	before, driver := n.values(), n.openUntil(-1)
	for fields, want := range map[string]string{
		`"governor": "performance", "minFrequency": "2GHz", "maxFrequency": "max", "idleLatency": 20`: "performance 2000000 3000000 20",
		`"minFrequency": "2.1GHz", "maxFrequency": "2.4GHz"`:                                          "schedutil 2000000 2000000 0", // limited
		`"governor": "powersave", "maxFrequency": "min", "interrupts": "away"`:                        "powersave 1000000 1000000 0",
		`"minFrequency": "base", "idleLatency": 0`:                                                    "schedutil 3000000 3000000 n/a",
	} {
		mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 4)), fields))
		n.expectCPUs(want, 4, 5, 6, 7)
		assertConsistent(t, n.disk, driver)
		n.unprepare(driver, "uid-a")
		n.expect(before)
	}
}

func TestKernelHealsACrashAfterAnyWrite(t *testing.T) {
	n := newRealNode(t)
	before := n.values()
	wanted := tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance", "minFrequency": "2.1GHz", "maxFrequency": "2.4GHz", "idleLatency": 20, "interrupts": "away"`)
	for last, died := 0, errCrash; died != nil; last++ {
		for what, next := range map[string]func(*Driver){
			"prepared again": func(d *Driver) { mustPrepare(t, d, wanted); n.expectCPUs("performance 2000000 2000000 20", 4, 5) },
			"unprepared":     func(*Driver) {},
		} {
			_, _, died = n.openUntil(last).Prepare(wanted, nil)
			if died != nil && !errors.Is(died, errCrash) {
				t.Fatal(died)
			}
			driver := n.openUntil(-1)
			next(driver)
			driver = n.openUntil(last) // dies again, unless the claim wrote more
			if err := driver.Unprepare("uid-a"); err != nil && !errors.Is(err, errCrash) {
				t.Fatal(err)
			}
			n.unprepare(n.openUntil(-1), "uid-a")
			if n.expect(before); t.Failed() {
				t.Fatalf("%s after %d writes", what, last)
			}
		}
	}
}

func TestKernelKeepsClaimsApartInAnyOrder(t *testing.T) {
	n := newRealNode(t)
	before, driver := n.values(), n.openUntil(-1)
	for _, first := range []types.UID{"uid-a", "uid-b"} {
		mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance", "idleLatency": 100, "interrupts": "away"`))
		mustPrepare(t, driver, tunedClaim(claim("b", result("r", "numa-1", 2)), `"governor": "powersave", "maxFrequency": "min", "interrupts": "away"`))
		n.expectCPUs("performance 1000000 3000000 100", 4, 5)
		n.expectCPUs("powersave 1000000 1000000 0", 6, 7)
		n.unprepare(driver, first, "uid-a", "uid-b")
		n.expect(before)
	}
}

func TestKernelKeepsWhatAnotherProgramWrites(t *testing.T) {
	n := newRealNode(t)
	before, driver := n.values(), n.openUntil(-1)
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance", "minFrequency": "2GHz", "idleLatency": 20`))
	governor, limit := cpuFile(4, "cpufreq/scaling_governor"), cpuFile(5, "power/pm_qos_resume_latency_us")
	n.write(governor, "powersave")
	n.write(limit, "7")
	n.unprepare(driver, "uid-a")
	want := maps.Clone(before)
	want[governor], want[limit] = "powersave", "7"
	n.expect(want)
	n.write(governor, before[governor])
	n.write(limit, before[limit])
}

func TestKernelHasOfflineCPUsAsTheyWereWhenTheyAreOnline(t *testing.T) {
	n := newRealNode(t)
	before, driver := n.values(), n.openUntil(-1)
	setOnline := func(cpu int, online bool) {
		n.write(cpuFile(cpu, "online"), map[bool]string{true: "1", false: "0"}[online])
		machine := testMachine()
		if !online {
			machine = without(machine, cpuset.New(cpu))
		}
		driver.SetMachine(machine)
		if err := driver.RepairPerformance(false); err != nil {
			t.Error(err)
		}
	}
	mustPrepare(t, driver, tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance", "minFrequency": "2GHz"`))
	setOnline(5, false)
	setOnline(5, true)
	n.expectCPUs("performance 2000000 3000000 0", 4, 5)
	setOnline(5, false)
	var notRestored *NotRestoredError
	if err := driver.Unprepare("uid-a"); !errors.As(err, &notRestored) {
		t.Errorf("error %v, want that a CPU is offline", err)
	}
	setOnline(5, true)
	n.unprepare(driver, "uid-a")
	n.expect(before)
}

func TestKernelHasWhatRefusalsName(t *testing.T) {
	n := newRealNode(t)
	before, driver := n.values(), n.openUntil(-1)
	for fields, want := range map[string]string{
		`"governor": "ondemand"`:      `request r: governor: "ondemand", cpus 4 with the frequency driver acpi-cpufreq have `,
		`"maxFrequency": "4.5GHz"`:    `request r: maxFrequency: "4.5GHz" is 4.5GHz, cpus 4 have 1GHz to 3GHz`,
		`"energyPreference": "power"`: `request r: energyPreference: "power", cpus 4 with the frequency driver acpi-cpufreq have none: `,
		`"minFrequency": "1.5x base"`: `request r: minFrequency: "1.5x base" is 4.5GHz, cpus 4 have 1GHz to 3GHz`,
	} {
		_, _, err := driver.Prepare(tunedClaim(claim("a", result("r", "numa-1", 2)), fields), nil)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", fields, err, want)
		}
		if governors := "performance"; strings.Contains(fields, "governor") && !strings.Contains(err.Error(), governors) {
			t.Errorf("error %v does not list the governor %s", err, governors)
		}
	}
	n.expect(before)
}
