package driver

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
)

// A crash is a stop after any number of steps, with or without a half-written
// file; the next start and a retry have to end where an undisturbed run ends.

func TestCrashDuringPrepareHeals(t *testing.T) {
	wanted := claim("a", result("cpus", "numa-0", 2), result("more", "numa-1", 2))
	want := func() map[string]string {
		disk := newDisk(t)
		mustPrepare(t, disk.open(), wanted)
		return disk.files()
	}()
	for done := range crashSweep(t, "prepare") {
		disk := newDisk(t)
		driver := disk.open()
		if finished := crashAfter(t, disk, driver.prepareSteps(mustPlan(t, driver, wanted)), done); finished {
			break
		}
		driver = disk.open()
		mustPrepare(t, driver, claim("b", result("r", "numa-1", 2))) // another claim meanwhile
		mustPrepare(t, driver, wanted)
		if err := driver.Unprepare("uid-b"); err != nil {
			t.Fatal(err)
		}
		got := disk.files()
		if done > 0 { // on record before the crash: the very same CPUs
			assertFiles(t, got, want)
		}
		assertDisjoint(t, driver)
	}
}

func TestCrashDuringUnprepareHeals(t *testing.T) {
	for done := range crashSweep(t, "unprepare") {
		disk := newDisk(t)
		driver := disk.open()
		want := disk.files()
		mustPrepare(t, driver, claim("a", result("cpus", "numa-0", 2)))
		if finished := crashAfter(t, disk, driver.unprepareSteps("uid-a"), done); finished {
			break
		}
		if err := disk.open().Unprepare("uid-a"); err != nil {
			t.Fatal(err)
		}
		assertFiles(t, disk.files(), want)
	}
}

func TestCrashDuringRecoveryHeals(t *testing.T) {
	rebooted := testConfig()
	rebooted.BootID = "boot-2"
	want := func() map[string]string {
		disk := newDisk(t)
		mustPrepare(t, disk.open(), claim("a", result("cpus", "numa-0", 2)))
		if _, err := disk.tryOpen(rebooted); err != nil {
			t.Fatal(err)
		}
		return disk.files()
	}()
	for done := range crashSweep(t, "recovery") {
		disk := newDisk(t)
		driver := disk.open()
		mustPrepare(t, driver, claim("a", result("cpus", "numa-0", 2)))
		driver.config = rebooted
		if finished := crashAfter(t, disk, driver.recovery("boot-1"), done); finished {
			break
		}
		if _, err := disk.tryOpen(rebooted); err != nil {
			t.Fatal(err)
		}
		assertFiles(t, disk.files(), want)
	}
}

// crashSweep yields 0, 1, 2 … and fails if the sweep never finishes.
func crashSweep(t *testing.T, what string) func(func(int) bool) {
	return func(yield func(int) bool) {
		for done := range 10 {
			if !yield(done) {
				if done < 2 {
					t.Errorf("%s has %d steps: nothing was swept", what, done)
				}
				return
			}
		}
		t.Errorf("%s has more steps than the sweep", what)
	}
}

// crashAfter performs some of the steps and leaves torn files behind; it reports
// whether there are fewer steps than that.
func crashAfter(t *testing.T, disk disk, steps []step, done int) (finished bool) {
	t.Helper()
	if done > len(steps) {
		return true
	}
	t.Logf("crash after %d of %v", done, steps)
	if err := perform(steps[:done]); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		filepath.Join(disk.state, checkpointName+".new"),
		filepath.Join(disk.specs, "dra.numa-claim_uid-a.json.new"),
	} {
		if err := os.WriteFile(path, []byte(`{"version":1,"sha`), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return false
}

func mustPlan(t *testing.T, driver *Driver, claim *resourceapi.ResourceClaim) Grant {
	t.Helper()
	wishes, err := driver.wishes(claim)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := driver.plan(claim, wishes)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

func mustPrepare(t *testing.T, driver *Driver, claim *resourceapi.ResourceClaim) []PreparedDevice {
	t.Helper()
	devices, err := driver.Prepare(claim)
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

// assertFiles ignores a torn checkpoint copy: nothing reads it.
func assertFiles(t *testing.T, got, want map[string]string) {
	t.Helper()
	delete(got, checkpointName+".new")
	if !maps.Equal(got, want) {
		t.Errorf("files\n%v\nwant\n%v", got, want)
	}
	for name := range got {
		if strings.HasSuffix(name, ".new") {
			t.Errorf("%s is left over", name)
		}
	}
}

func assertDisjoint(t *testing.T, driver *Driver) {
	t.Helper()
	if err := newCheckpoint("", driver.grants).validate(); err != nil {
		t.Error(err)
	}
}
