package driver

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A crash is a stop after any number of steps, with or without a half-written file. The
// next start and a retry must reach the same state as a run without a crash.

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
		mustPrepare(t, driver, claim("b", result("r", "numa-1", 2))) // in the meantime, another claim
		mustPrepare(t, driver, wanted)
		if err := driver.Unprepare("uid-b"); err != nil {
			t.Fatal(err)
		}
		got := disk.files()
		if done > 0 { // recorded before the crash: exactly the same CPUs
			assertFiles(t, got, want)
		}
		assertDisjoint(t, driver)
	}
}

// One of two claims of a pod takes the partition from the other. In between, the
// machine loses a CPU and gets it back.
func TestCrashDuringPrepareOfAPodHeals(t *testing.T) {
	pod := podOf("main:a,b main:b main:")
	other := claim("a", result("r", "numa-0", 2))
	wanted := configured(claim("b", counted(result("r", "numa-1", 2))), fromClaim(`"partition": "isolated", "memoryPolicy": "bind"`))
	want := func() map[string]string {
		disk := newDisk(t)
		driver := disk.open()
		mustPrepare(t, driver, other, pod)
		mustPrepare(t, driver, wanted, pod)
		return disk.files()
	}()
	for done := range crashSweep(t, "prepare of a pod") {
		disk := newDisk(t)
		driver := disk.open()
		mustPrepare(t, driver, other, pod)
		steps := driver.prepareSteps(mustPlan(t, driver, wanted, pod))
		driver.SetMachine(without(testMachine(), cpuset.New(3, 5)))
		if finished := crashAfter(t, disk, steps, done); finished {
			break
		}
		disk.machine = driver.Machine()
		driver = disk.open()
		assertConsistent(t, disk, driver)
		driver.SetMachine(testMachine())
		mustPrepare(t, driver, other, pod)
		mustPrepare(t, driver, wanted, pod)
		assertFiles(t, disk.files(), want)
		assertConsistent(t, disk, driver)
	}
}

// A claim is gone, and its CPUs are gone too when its last container ends.
func TestCrashDuringObserveHeals(t *testing.T) {
	orphan := func() (disk, *Driver) {
		disk := preparedDisk(t)
		driver, _ := disk.recover(claims{"uid-a": nil, "uid-b": nil}, Held{Cgroup: "c", CPUs: cpuset.New(2, 4)})
		driver.SetMachine(without(testMachine(), cpuset.New(2, 3)))
		return disk, driver
	}
	want := func() map[string]string {
		disk, driver := orphan()
		if _, err := driver.Observe(nil); err != nil {
			t.Fatal(err)
		}
		assertConsistent(t, disk, driver)
		return disk.files()
	}()
	for done := range crashSweep(t, "observe") {
		disk, driver := orphan()
		if finished := crashAfter(t, disk, driver.observeSteps(driver.planner().planObservation(nil)), done); finished {
			break
		}
		disk.machine = driver.Machine()
		driver, _ = disk.recover(claims{"uid-a": nil, "uid-b": nil}, Held{Cgroup: "c", CPUs: cpuset.New(2, 4)})
		if _, err := driver.Observe(nil); err != nil {
			t.Fatal(err)
		}
		assertFiles(t, disk.files(), want)
		driver.SetMachine(testMachine())
		assertConsistent(t, disk, driver)
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
		driver, err := disk.tryRead(rebooted)
		if err != nil {
			t.Fatal(err)
		}
		if finished := crashAfter(t, disk, driver.recoverySteps(driver.planner().planRecovery(nil, nil).grants), done); finished {
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

// crashAfter performs some of the steps, and half of the next one. It reports whether
// there are fewer steps than that.
func crashAfter(t *testing.T, disk disk, steps []step, done int) (finished bool) {
	t.Helper()
	if done > len(steps) {
		return true
	}
	t.Logf("crash after %d of %v", done, steps)
	if err := perform(steps[:done]); err != nil {
		t.Fatal(err)
	}
	if done < len(steps) {
		disk.crashInside(rand.New(rand.NewPCG(1, 1)), steps[done])
	}
	return false
}

// crashInside leaves what a crash inside a step leaves. Files that the step writes are
// half written next to the old ones. Some of the files that it removes are left.
func (d disk) crashInside(r *rand.Rand, s step) {
	d.t.Helper()
	before := d.files()
	if err := s.run(); err != nil {
		d.t.Fatal(err)
	}
	after := d.files()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		content := after[name]
		if old, existed := before[name]; existed && old != content {
			d.write(name, old)
		} else if !existed {
			d.remove(name)
		} else {
			continue
		}
		d.write(name+".new", content[:r.IntN(len(content)+1)])
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, left := after[name]; !left && r.IntN(2) == 0 {
			d.write(name, before[name])
		}
	}
}

func mustPlan(t *testing.T, driver *Driver, claim *resourceapi.ResourceClaim, pods ...*corev1.Pod) change {
	t.Helper()
	wishes, err := driver.planner().wishes(claim)
	if err != nil {
		t.Fatal(err)
	}
	next, err := driver.planner().plan(claim, pods, wishes)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func mustPrepare(t testing.TB, driver *Driver, claim *resourceapi.ResourceClaim, pods ...*corev1.Pod) []PreparedDevice {
	t.Helper()
	_, devices, err := driver.Prepare(claim, pods)
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func assertFiles(t testing.TB, got, want map[string]string) {
	t.Helper()
	for name := range got {
		if text, wanted := want[name]; !wanted {
			t.Errorf("%s is left over", name)
		} else if got[name] != text {
			t.Errorf("%s is\n%s\nwant\n%s", name, got[name], text)
		}
	}
	for name := range want {
		if _, there := got[name]; !there {
			t.Errorf("%s is missing", name)
		}
	}
}

func assertDisjoint(t *testing.T, driver *Driver) {
	t.Helper()
	if _, err := driver.grants.Text(nil, ""); err != nil {
		t.Error(err)
	}
}

// assertConsistent compares what a driver has with its files. These grants are on
// record and have a spec, nothing else is there, and no CPU is lost. It also compares
// what readers see with what the driver has.
func assertConsistent(t testing.TB, disk disk, driver *Driver) {
	t.Helper()
	if shown := driver.shown.Load(); !slices.EqualFunc(shown.grants.Grants(), driver.grants.Grants(), ledger.Grant.Equal) {
		t.Errorf("shown are grants %v of %v", shown.grants, driver.grants)
	}
	recorded, err := driver.grants.Text(nil, driver.config.BootID)
	if err != nil {
		t.Error(err)
	}
	want := map[string]string{ledger.CheckpointName: string(recorded), tuning.FirstName: string(driver.tuning.FirstText())}
	var taken cpuset.Set
	for _, grant := range driver.grants.Grants() {
		spec, err := driver.planner().spec(ledger.NewListed(grant))
		if err != nil {
			t.Fatal(err)
		}
		want[specName(grant.UID)] = string(spec)
		taken = taken.Union(grant.CPUs())
	}
	assertFiles(t, disk.files(), want)
	for _, held := range driver.blocked {
		taken = taken.Union(held.CPUs)
	}
	taken = taken.Intersection(driver.layout.grantable) // the other CPUs are reserved or offline
	if free := driver.planner().free(); free.Overlaps(taken) || free.Union(taken) != driver.layout.grantable {
		t.Errorf("cpus %s are free, %s granted or blocked, of %s", free, taken, driver.layout.grantable)
	}
}
