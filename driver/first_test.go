package driver

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// changedNode is a node on which a default of the NodeConfig and a claim have changed everything
// that can be. first is what it had before.
func changedNode(t *testing.T) (n *powerNode, first map[string]string) {
	t.Helper()
	n = newDieNode(t)
	first = n.power.Values()
	mustPrepare(t, n.start(slow(), false), wantsAll())
	return n, first
}

func wantsAll() *resourceapi.ResourceClaim {
	return tunedClaim(claim("a", result("r", "numa-1", 2)), `"minUncoreFrequency": "2GHz", "interrupts": "away", "minFrequency": "min"`)
}

// docs/runbooks.md says to delete the checkpoint. The CDI specs still have the grants, unless
// somebody has deleted these, too: then the frequencies of the claim are unknown.
func TestTheRemedyForADamagedCheckpointGivesTheHostBack(t *testing.T) {
	for _, specs := range []bool{true, false} {
		n, first := changedNode(t)
		n.remove(ledger.CheckpointName)
		if !specs {
			n.remove(specName("uid-a"))
		}
		driver := n.start(slow(), false)
		if driver.FirstUnknown() != nil {
			t.Errorf("with specs: %t: %v", specs, driver.FirstUnknown())
		}
		unprepare(t, driver, "uid-a")
		driver = n.start(deviceclasses.PerformanceSettings{}, false)
		if n.expect(first); t.Failed() {
			t.Fatalf("with specs: %t", specs)
		}
		assertConsistent(t, n.disk, driver)
	}
}

// A daemon that does not know what the host had first says so once, and takes what the kernel
// began with.
func TestFirstValuesThatAreLostAreThoseOfTheKernel(t *testing.T) {
	good := files.Read(t, "tuning/testdata/first.json")
	for name, row := range map[string]struct{ text, want string }{
		"missing":          {"", tuning.FirstName + ": it is missing"},
		"torn":             {good[:100], tuning.FirstName + ": damaged first values: unexpected end of JSON input"},
		"of another build": {strings.Replace(good, `"version":1`, `"version":2`, 1), tuning.FirstName + ": written by another build: format"},
		"of another boot":  {string(tuning.First{BootID: "boot-0"}.Encode()), tuning.FirstName + ": it is of boot boot-0"},
	} {
		n, first := changedNode(t)
		n.remove(tuning.FirstName)
		if row.text != "" {
			n.write(tuning.FirstName, row.text)
		}
		driver := n.start(slow(), false)
		if err := driver.FirstUnknown(); err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: unknown because of %v, want %q", name, err, row.want)
		}
		assertConsistent(t, n.disk, driver)
		unprepare(t, driver, "uid-a")
		driver = n.start(deviceclasses.PerformanceSettings{}, false)
		if err := driver.FirstUnknown(); err != nil {
			t.Errorf("%s: said again: %v", name, err)
		}
		left := maps.Clone(first)
		for file, text := range n.power.Values() { // it is not known what it was
			if filepath.Base(file) == "energy_performance_preference" {
				left[file] = text
			}
		}
		if n.expect(left); t.Failed() {
			t.Fatal(name)
		}
	}
}

// What a claim wanted is not what its CPUs had first.
func TestFirstValuesThatAreLostAreNotThoseOfAClaim(t *testing.T) {
	n := newPowerNode(t)
	first := n.power.Values()
	settings := deviceclasses.PerformanceSettings{Governor: "powersave"}
	mustPrepare(t, n.start(settings, false), tunedClaim(claim("a", result("r", "numa-1", 2)), `"governor": "performance"`))
	n.remove(tuning.FirstName)
	driver := n.start(settings, false)
	if driver.FirstUnknown() == nil {
		t.Error("the first values are known")
	}
	unprepare(t, driver, "uid-a")
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(first)
}

// A boot in which nothing was changed has no first values to lose.
func TestFirstValuesOfAnotherBootAreNotMissed(t *testing.T) {
	n, _ := changedNode(t)
	n.write(tuning.FirstName, "{")
	n.boot, n.power = "boot-2", newDieNode(t).power
	first := n.power.Values()
	driver := n.start(slow(), false)
	if err := driver.FirstUnknown(); err != nil {
		t.Error(err)
	}
	mustPrepare(t, driver, wantsAll())
	unprepare(t, driver, "uid-a")
	n.start(deviceclasses.PerformanceSettings{}, false)
	n.expect(first)
}

// The daemon dies before or after any write, to the kernel or to one of its two files. The
// next one goes on, and what the host had first is not lost.
func TestCrashBetweenTheTwoFilesHeals(t *testing.T) {
	for what, row := range map[string]struct {
		change func(n *powerNode)  // before the daemon starts
		do     func(*Driver) error // then
	}{
		"prepare": {func(n *powerNode) { unprepare(n.t, n.start(slow(), false), "uid-a") }, func(d *Driver) error {
			_, _, err := d.Prepare(wantsAll(), nil)
			return err
		}},
		"unprepare":     {func(*powerNode) {}, func(d *Driver) error { return d.Unprepare("uid-a") }},
		"no checkpoint": {func(n *powerNode) { n.remove(ledger.CheckpointName) }, nil},
		"no claim":      {func(n *powerNode) { n.remove(ledger.CheckpointName); n.remove(specName("uid-a")) }, nil},
	} {
		for last := 0; ; last++ {
			n, first := changedNode(t)
			row.change(n)
			n.power.Settle()
			config, left := n.dying(last)
			config.Tuning.Default = slow()
			driver, err := n.tryRead(config)
			if err != nil {
				t.Fatal(err)
			}
			replace := driver.records.replace
			driver.records.replace = func(name string, text []byte) error {
				if *left--; *left < 0 {
					return errCrash
				}
				return replace(name, text)
			}
			if _, err = driver.Recover(nil, nil); err == nil && row.do != nil {
				err = row.do(driver)
			}
			driver = n.start(slow(), false)
			if driver.FirstUnknown() != nil {
				t.Error(driver.FirstUnknown())
			}
			assertConsistent(t, n.disk, driver)
			if what == "prepare" {
				mustPrepare(t, driver, wantsAll())
				n.expectUncore("prepared again", 800, 800, 2000, 800)
				assertConsistent(t, n.disk, driver)
			}
			unprepare(t, driver, "uid-a")
			driver = n.start(deviceclasses.PerformanceSettings{}, false)
			assertConsistent(t, n.disk, driver)
			if n.expect(first); t.Failed() {
				t.Fatalf("%s after %d writes", what, last)
			}
			if err == nil && *left >= 0 {
				break
			}
		}
	}
}
