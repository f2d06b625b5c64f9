package driver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// stall replaces a file by one that cannot be read before resume is called. reached
// returns when the driver tries to read it.
func (d disk) stall(name string) (reached func() (resume func())) {
	d.t.Helper()
	path := filepath.Join(d.dirOf(name).Name(), name)
	if err := os.Rename(path, path+".aside"); err == nil {
		d.t.Cleanup(func() { _ = os.Remove(path + ".aside") })
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		d.t.Fatal(err)
	}
	return func() func() {
		pipe, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for a reader
		if err != nil {
			d.t.Fatal(err)
		}
		return func() { _ = pipe.Close() }
	}
}

// A slow disk delays callers that write, but no other callers. No caller sees half of a
// claim.
func TestSlowDiskHoldsUpOnlyWhoWrites(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("early", result("r", "numa-1", 2))) // 4-5
	two := func(name string) *resourceapi.ResourceClaim {
		return claim(name, result("r", "numa-1", 1), result("q", "numa-0", 1))
	}
	mustPrepare(t, driver, two("a"))
	reached := disk.stall(specName("uid-a"))
	done := make(chan error, 3)
	prepare := func(name string) {
		_, _, err := driver.Prepare(two(name), nil)
		done <- err
	}
	go prepare("a")
	resume := reached() // the claim is on record, and the driver reads its spec to compare it
	go prepare("a")
	go prepare("b")
	if got := driver.Grants(); len(got) != 2 || got[1].CPUs() != cpuset.New(2, 6) {
		t.Errorf("while the disk is slow grants are %v", got)
	}
	if pinned, ok := driver.Pinned([]string{"dra.numa/claim=uid-early_r_numa-1"}); !ok || pinned.CPUs != cpuset.New(4, 5) {
		t.Errorf("while the disk is slow the earlier claim has %+v, %t", pinned, ok)
	}
	if pool, _ := driver.SharedPool(); pool != cpuset.New(0, 1, 3, 7) || driver.Machine().Online.Size() != 8 {
		t.Errorf("while the disk is slow the pool is %s", pool)
	}
	if len(done) > 0 {
		t.Errorf("a claim was prepared while another one is being written: %v", <-done)
	}
	resume()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	disk.remove(specName("uid-a") + ".aside")
	assertDisjoint(t, driver)
	assertConsistent(t, disk, driver)
	if got := grantOf(driver, "uid-a").CPUs(); got != cpuset.New(2, 6) {
		t.Errorf("claim a has cpus %s, want what it had at first", got)
	}
}

func TestNothingIsPreparedBesideASlowRecovery(t *testing.T) {
	disk := preparedDisk(t)
	driver, err := disk.tryRead(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	reached := disk.stall(specName("uid-a"))
	recovered, prepared := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := driver.Recover(twoClaims(), nil)
		recovered <- err
	}()
	resume := reached()
	go func() {
		_, _, err := driver.Prepare(claim("c", result("r", "numa-1", 2)), nil)
		prepared <- err
	}()
	if got := driver.Grants(); len(got) != 2 {
		t.Errorf("while it recovers grants are %v", got)
	}
	if len(prepared) > 0 {
		t.Errorf("prepared during a recovery: %v", <-prepared)
	}
	resume()
	if err := <-recovered; err != nil {
		t.Error(err)
	}
	if err := <-prepared; err != nil {
		t.Error(err)
	}
	disk.remove(specName("uid-a") + ".aside")
	assertConsistent(t, disk, driver)
}

// No decision may depend on the time, so that a clock that jumps cannot change any.
// Only measurements read the clock, of fsync and of how long the lock is held. They use
// its monotonic part.
func TestNoDecisionLooksAtTheClock(t *testing.T) {
	files := 0
	for _, dir := range []string{".", "zones", "attached", "../cdi", "../internal/durable", "../deviceclasses", "../numa", "../numa/cpuset", "../numa/pick"} {
		all, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			files++
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				selector, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				from, ok := selector.X.(*ast.Ident)
				allowed := []string{"Duration"}
				if name == "../internal/durable/durable.go" || name == "mutex.go" {
					allowed = append(allowed, "Now", "Since", "Time")
				}
				if ok && from.Name == "time" && !slices.Contains(allowed, selector.Sel.Name) {
					t.Errorf("%s uses time.%s", name, selector.Sel.Name)
				}
				return true
			})
		}
	}
	if files < 40 {
		t.Errorf("looked at %d files only", files)
	}
}
