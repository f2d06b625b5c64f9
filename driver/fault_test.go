package driver

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// operations are all operations that write. Each runs on a disk with claims "a" and
// "keep" prepared. Afterwards, "b" must be prepared completely or not at all.
var operations = map[string]func(disk, *Driver) (*Driver, error){
	"prepare": func(_ disk, d *Driver) (*Driver, error) {
		_, _, err := d.Prepare(claim("b", result("r", "numa-1", 2), result("m", "numa-2", 0)), nil)
		return d, err
	},
	"prepare anew": func(_ disk, d *Driver) (*Driver, error) {
		_, _, err := d.Prepare(claim("a", result("r", "numa-1", 2)), nil)
		return d, err
	},
	"prepare beside": func(_ disk, d *Driver) (*Driver, error) { // claim a loses its partition
		_, _, err := d.Prepare(claim("b", result("r", "numa-1", 1)), []*corev1.Pod{podOf("main:a,b main:b main:")})
		return d, err
	},
	"unprepare": func(_ disk, d *Driver) (*Driver, error) { return d, d.Unprepare("uid-a") },
	"recover from specs": func(disk disk, _ *Driver) (*Driver, error) {
		if _, err := disk.state.Lstat(ledger.CheckpointName); err == nil {
			disk.remove(ledger.CheckpointName)
		}
		return disk.tryOpen(testConfig())
	},
	"recover after boot": func(disk disk, _ *Driver) (*Driver, error) {
		config := testConfig()
		config.BootID = "boot-2"
		return disk.tryOpen(config)
	},
	"observe": func(disk disk, _ *Driver) (*Driver, error) {
		d, err := disk.tryRead(testConfig())
		if err == nil {
			_, err = d.Recover(claims{"uid-a": nil}, []Held{{Cgroup: "c", CPUs: cpuset.New(2)}})
		}
		if err == nil {
			_, err = d.Observe(nil)
		}
		return d, err
	},
	"recover orphan": func(disk disk, _ *Driver) (*Driver, error) {
		d, err := disk.tryRead(testConfig())
		if err == nil {
			_, err = d.Recover(claims{"uid-a": nil}, nil)
		}
		return d, err
	},
}

func faultDisk(t *testing.T) (disk, *Driver) {
	t.Helper()
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	mustPrepare(t, driver, claim("keep", result("r", "numa-1", 2)))
	return disk, driver
}

// assertNothingLost checks what a start finds after an operation that may have failed.
func assertNothingLost(t *testing.T, disk disk, want ledger.Grant) {
	t.Helper()
	next, err := disk.tryRead(testConfig())
	if err != nil {
		t.Errorf("read after the error: %v", err)
		return
	}
	if got := grantOf(next, want.UID); !got.Equal(want) {
		t.Errorf("after the error %s is on record, want %s", got, want)
	}
	for name := range disk.files() {
		if strings.HasSuffix(name, ".new") && disk.files()[name] != "dir" {
			t.Errorf("%s is left over", name)
		}
	}
}

// A directory with the name of a file makes one step fail, as a read-only disk would. A
// test that runs as root cannot have a read-only disk. The new file cannot be made, and
// the old file cannot be removed.
func TestDiskThatCannotBeWrittenIsAnErrorAndHeals(t *testing.T) {
	failed := map[string]bool{}
	for operation, do := range operations {
		for _, blocked := range []string{
			ledger.CheckpointName + ".new", tuning.FirstName + ".new", specName("uid-a") + ".new", specName("uid-b") + ".new", specName("uid-keep") + ".new",
			specName("uid-a"),
		} {
			t.Run(operation+" without "+blocked, func(t *testing.T) {
				disk, driver := faultDisk(t)
				keep := grantOf(driver, "uid-keep")
				disk.remove(blocked)
				if err := disk.dirOf(blocked).MkdirAll(blocked+"/in-the-way", 0o755); err != nil {
					t.Fatal(err)
				}
				driver, err := do(disk, driver)
				if err != nil {
					failed[operation] = true
					if !strings.Contains(err.Error(), blocked) {
						t.Errorf("error %v does not name %s", err, blocked)
					}
				}
				if err != nil && blocked != specName("uid-a") && operation != "recover from specs" {
					assertNothingLost(t, disk, keep)
				}
				disk.remove(blocked)
				if driver, err = do(disk, driver); err != nil {
					t.Fatalf("again: %v", err)
				}
				if operation == "unprepare" || strings.HasPrefix(operation, "prepare") { // no recovery: specs of other claims stay as they are
					driver = disk.open()
				}
				assertConsistent(t, disk, driver)
				if !grantOf(driver, "uid-keep").Equal(keep) {
					t.Errorf("claim keep has %s, want %s", grantOf(driver, "uid-keep"), keep)
				}
			})
		}
	}
	for operation := range operations {
		if !failed[operation] {
			t.Errorf("%s never failed", operation)
		}
	}
}

// inChild runs the test again in a process of its own, whose limits it may change, and
// reports whether this is that process.
func inChild(t *testing.T) bool {
	t.Helper()
	const variable = "DRA_NUMA_TEST_IN_CHILD"
	if os.Getenv(variable) != "" {
		return true
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"=1")
	if output, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
	return false
}

// The kernel stops every write at a file size, as on a full disk: the first bytes are
// written, then there is an error. The limit applies to a process, so the test runs in one
// of its own.
func TestFullDiskIsAnErrorAndHeals(t *testing.T) {
	if !inChild(t) {
		return
	}
	for operation, do := range operations {
		failures := 0
		for size, failed := uint64(0), true; failed; size += 97 {
			if failed = fullAt(t, size, do); failed {
				failures++
			}
			if t.Failed() {
				t.Fatalf("%s with files of %d bytes", operation, size)
			}
		}
		if failures < 3 {
			t.Errorf("%s failed at %d sizes only", operation, failures)
		}
	}
}

// fullAt reports whether the operation failed, and checks that it heals.
func fullAt(t *testing.T, size uint64, do func(disk, *Driver) (*Driver, error)) (failed bool) {
	t.Helper()
	disk, driver := faultDisk(t)
	before, keep := driver.grants, grantOf(driver, "uid-keep")
	var err error
	withFileSize(t, size, func() { driver, err = do(disk, driver) })
	if err == nil {
		return false
	}
	assertNothingLost(t, disk, keep)
	if driver != nil {
		assertOldOrNew(t, driver.grants, before)
	}
	if driver, err = do(disk, driver); err != nil {
		t.Fatalf("again: %v", err)
	}
	assertConsistent(t, disk, driver)
	return true
}

func assertOldOrNew(t *testing.T, grants, before ledger.List) {
	t.Helper()
	for _, grant := range before.Grants() {
		if now, kept := grants.Find(grant.UID); grant.UID != "uid-a" && (!kept || !now.Equal(grant)) {
			t.Errorf("%s is on record as %s", grant, now)
		}
	}
}

// withFileSize runs f while no file of this process can grow beyond the size.
func withFileSize(t *testing.T, size uint64, f func()) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := syscall.Rlimit{Cur: size, Max: limit.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}
