package pin

import (
	"path"
	"strconv"
	"sync"
	"testing"
	"time"
)

// needMask skips the test if the kernel has no mask that it keeps isolated partitions off.
func (k kernel) needMask() {
	k.Helper()
	if _, err := readLine(k.work.FS(), requestedFile); err != nil {
		k.Skipf("a kernel before 6.8: %v", err)
	}
}

// The kernel's workqueues have no CPU of an isolated partition, and its own mask does not
// change when the partition begins and ends.
func TestKernelWorkqueuesLeaveIsolatedPartitions(t *testing.T) {
	k := needKernel(t, ctrA)
	k.needMask()
	h := k.host()
	check := func(when, requested, isolated, effective string) {
		t.Helper()
		for _, file := range []struct{ name, want string }{
			{requestedFile, requested}, {"cpumask_isolated", isolated}, {workqueuesFile, effective},
		} {
			if got := checkedMask(t, h, file.name); got != file.want {
				t.Errorf("%s: %s has cpus %s, want %s", when, file.name, got, file.want)
			}
		}
	}
	all := checkedMask(t, h, requestedFile)
	rest := parse(all).Difference(parse("2-3")).String()
	check("first", all, "", all)
	k.start(ctrA)
	claim := claimed("job", "2-3", "", PartitionIsolated)
	h.around = func(w Write, effect func() error) error {
		if w.File == path.Join(ctrA, partitionFile) {
			check("before "+w.Value, rest, "", rest)
		}
		return effect()
	}
	if err := Pin(h, ctrA, ScopeContainer, claim); err != nil {
		t.Fatal(err)
	}
	h.around = nil
	check("while it runs", rest, "2-3", rest)
	k.end(ctrA)
	k.remove(ctrA)
	check("after the runtime has removed its cgroup", rest, "", rest)
	_ = keeper(h, nil).pass(t.Context(), &watch{})
	check("at the end", all, "", all)
	if left := recordFiles(k); len(left) > 0 {
		t.Errorf("files left over: %q", left)
	}
}

func checkedMask(t *testing.T, h Host, file string) string {
	t.Helper()
	line, err := readLine(h.Workqueues.FS(), file)
	if err != nil {
		t.Fatal(err)
	}
	return mask(t, line).String()
}

// A container with an isolated partition starts and ends while a task joins other cgroups, as
// when pods start. Without [Host.Workqueues], Linux 6.12 soon starts and ends no process any
// more, neither here nor elsewhere on the host.
func TestKernelIsolatedPartitionsWhileTasksMove(t *testing.T) {
	k := needKernel(t, ctrA)
	k.needMask()
	h := k.host()
	if h.Releaser == nil {
		t.Error("the thread that ends those of workqueues is not visible")
	}
	from, to := k.create("pintest-system/from"), k.create("pintest-system/to")
	pid := strconv.Itoa(k.start(from))
	done := make(chan struct{})
	var mover sync.WaitGroup
	moves := 0
	mover.Go(func() {
		for ; ; time.Sleep(2 * time.Millisecond) { // without a pause, it starves the others
			select {
			case <-done:
				return
			default:
			}
			next := []string{to, from}[moves%2]
			if err := writeKernelFile(k.root, path.Join(next, "cgroup.procs"), pid); err != nil {
				t.Error(err)
				return
			}
			moves++
		}
	})
	for range 30 {
		k.start(ctrA)
		if err := Pin(h, ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionIsolated)); err != nil {
			t.Error(err)
		}
		k.end(ctrA)
		_ = keeper(h, nil).pass(t.Context(), &watch{})
	}
	close(done)
	mover.Wait()
	if moves < 30 {
		t.Errorf("%d moves during 30 partitions", moves)
	}
}
