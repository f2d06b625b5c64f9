package pin

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// Every other test of this package fails if an isolated partition begins or ends on CPUs that
// the kernel's workqueues have: see fake.settle.

func TestWorkqueuesLeaveIsolatedPartitions(t *testing.T) {
	f := newFake(t, false)
	check := func(when, want string) {
		t.Helper()
		if got := f.requested().String(); got != want {
			t.Errorf("%s: the kernel's workqueues have cpus %s, want %s", when, got, want)
		}
	}
	running(f, ctrA, ctrB, ctrC)
	f.request(parse("0-7,10-15")) // the administrator has taken 8-9
	mustPin(f, ctrA, ScopeContainer, claimed("a", "2-3", "", PartitionRoot))
	check("with a root partition", "0-7,10-15")
	mustPin(f, ctrB, ScopePod, claimed("b", "4-5,8", "", PartitionIsolated))
	check("with an isolated one", "0-3,6-7,10-15")
	mustPin(f, ctrC, ScopeContainer, claimed("c", "6", "", PartitionIsolated))
	check("with two", "0-3,7,10-15")
	keep(f)
	check("after a look of the keeper", "0-3,7,10-15")

	f.request(f.all) // a program that does not know of us
	keep(f)
	check("after another program has written the mask", "0-3,7,9-15")
	f.end(ctrB)
	keep(f)
	check("after the end of one", "0-5,7-15")
	f.end(ctrC)
	keep(f)
	check("after the end of all", "0-15")
	if files := recordFiles(f); len(files) != 1 || strings.HasPrefix(files[0], takenFile) {
		t.Errorf("records %q, want only that of %s", files, ctrA)
	}
}

// A container does not start with a partition that could stop the kernel.
func TestIsolatedPartitionNeedsWorkqueues(t *testing.T) {
	f := newFake(t, false)
	running(f, ctrA)
	f.root.around = func(w Write, effect func() error) error {
		if w.File == workqueuesFile {
			return syscall.EROFS
		}
		return f.around(w, effect)
	}
	err := Pin(f.host(), ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionIsolated))
	want := "set the kernel's workqueues to cpus 0-1,4-15, without those of isolated partitions: read-only file system"
	if !errors.Is(err, syscall.EROFS) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	checkPartitions(f)
	mustPin(f, ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionRoot))
}

// Whatever a power failure has left of the record, or the boot before, pins go on.
func TestWorkqueuesOfAnotherBoot(t *testing.T) {
	for _, text := range []string{"", "{", `{"boot":"another boot","cpus":"0-15"}`} {
		f := newFake(t, false)
		running(f, ctrA)
		f.request(parse("0-7"))
		if err := f.root.Records.WriteFile(takenFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		mustPin(f, ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionIsolated))
		f.end(ctrA)
		keep(f)
		if got := f.requested().String(); got != "0-7" {
			t.Errorf("record %q: the kernel's workqueues have cpus %s, want 0-7", text, got)
		}
	}
}

// A mask that cannot be read keeps the keeper from no repair, and is reported.
func TestKeeperRepairsWithoutWorkqueues(t *testing.T) {
	f := newFake(t, false)
	running(f, ctrA, ctrB)
	mustPin(f, ctrA, ScopeContainer, claimed("a", "2-3", "", PartitionIsolated))
	mustPin(f, ctrB, ScopeContainer, claimed("b", "5", "1", PartitionRoot))
	if err := f.root.Workqueues.WriteFile(requestedFile, []byte("none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.root.around = nil // files only: the fake reads the mask, too
	if err := writeKernelFile(f.root.Cgroups, ctrB+"/"+memsFile, "0"); err != nil {
		t.Fatal(err)
	}
	lines := keep(f)
	if got, err := readLine(f.root.Cgroups.FS(), ctrB+"/"+memsFile); err != nil || got != "1" {
		t.Errorf("%s is %q, %v, want 1", memsFile, got, err)
	}
	if log := strings.Join(lines, "\n"); !strings.Contains(log, "read the mask of the kernel's workqueues, cpumask_requested: ") {
		t.Errorf("the keeper logs %q", log)
	}
}

// Every other test of this package fails if the isolated CPUs change while the kernel ends
// threads: see fake.settle.
func TestIsolatedPartitionWaitsForTheKernelsThreads(t *testing.T) {
	f := newFake(t, false)
	running(f, ctrA)
	f.root.Releaser = threadIn("D")
	synctest.Test(t, func(t *testing.T) {
		err := Pin(f.host(), ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionIsolated))
		if want := "the kernel still ends threads of its workqueues after 10s: its thread pool_workqueue_release is in state D"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
	checkPartitions(f)
	mustPin(f, ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionRoot))
	for _, text := range []string{"", "3 (pool", "3 (pool) S 2 0 0"} {
		f.root.Releaser = fstest.MapFS{"stat": {Data: []byte(text)}}
		if err := f.host().awaitReleaser(); err == nil || !strings.HasSuffix(err.Error(), "want a name in parentheses and 7 fields") {
			t.Errorf("stat %q: error %v", text, err)
		}
	}
}

// The keeper has changed the mask without seeing how long the kernel takes.
func TestIsolatedPartitionEndsAfterTheKernelsThreads(t *testing.T) {
	f := newFake(t, false)
	running(f, ctrA, ctrB)
	mustPin(f, ctrA, ScopeContainer, claimed("a", "2-3", "", PartitionIsolated))
	f.end(ctrA)
	f.ending = 2
	mustPin(f, ctrB, ScopeContainer, claimed("b", "4-5", "", PartitionRoot))
	if !f.isolated.IsEmpty() {
		t.Errorf("cpus %s are isolated without a container", f.isolated)
	}
}

// In a container, the kernel's threads are not visible.
func TestWorkqueuesChangeWithAPauseInAContainer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, false)
		f.root.Releaser = FindReleaser(fstest.MapFS{"1/stat": {Data: []byte("1 (numa-pin) S 0 1 1 0 -1 4194560 0\n")}})
		f.root.around = func(w Write, effect func() error) error {
			err := f.around(w, effect)
			f.ending = 0
			return err
		}
		running(f, ctrA, ctrB)
		for _, step := range []struct {
			container string
			partition Partition
			want      time.Duration
		}{{ctrA, PartitionRoot, 0}, {ctrB, PartitionIsolated, releaserPause}, {ctrB, PartitionIsolated, 0}} {
			began := time.Now()
			mustPin(f, step.container, ScopeContainer, claimed(step.container[len(step.container)-1:], map[string]string{ctrA: "2-3", ctrB: "4-5"}[step.container], "", step.partition))
			if took := time.Since(began); took != step.want {
				t.Errorf("partition %s: took %s, want %s", step.partition, took, step.want)
			}
		}
	})
}

func TestFindReleaser(t *testing.T) {
	user := &fstest.MapFile{Data: []byte("3 (" + releaser + ") R 1 3 3 0 -1 4194560 0\n")}
	other := &fstest.MapFile{Data: []byte("5 (odd) name) S 2 0 0 0 -1 2129984 0\n")}
	dir := FindReleaser(fstest.MapFS{"3/stat": user, "5/stat": other, "12/stat": threadIn("S")["stat"]})
	if dir == nil {
		t.Fatal("not found")
	}
	if p, err := readProcess(dir); p.state != "S" || err != nil {
		t.Errorf("found %+v, %v", p, err)
	}
	if FindReleaser(fstest.MapFS{"3/stat": user, "5/stat": other}) != nil {
		t.Error("found a process of a user, or another thread of the kernel")
	}
}
