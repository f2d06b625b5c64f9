package pin

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Clear leaves a running container alone, and nothing else.
func TestClearLeavesOnlyRunningContainers(t *testing.T) {
	eachFake(t, func(m machine) {
		f := m.(*fake)
		for _, container := range []string{ctrA, ctrC} {
			f.create(container)
			f.start(container)
		}
		for container, cpus := range map[string]string{ctrA: "2-3", ctrC: "5"} {
			if err := Pin(m.host(), container, ScopeContainer, claimed(container, cpus, "", PartitionRoot)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.host().Cgroups.Mkdir(reclaimDir, 0o755); err != nil { // empty: a real one can be removed with its files
			t.Fatal(err)
		}
		f.end(ctrA)
		live, err := Clear(m.host())
		if err != nil || !slices.Equal(live, []string{ctrC}) {
			t.Errorf("live %q, error %v", live, err)
		}
		checkPartitions(m, Holding{ctrC, parse("5"), "root"})
		if _, err := m.host().Cgroups.Stat(reclaimDir); err != nil {
			t.Errorf("what a running container needs is gone: %v", err)
		}
		f.end(ctrC)
		for range 2 {
			if live, err := Clear(m.host()); err != nil || len(live) > 0 {
				t.Errorf("live %q, error %v", live, err)
			}
		}
		if left := recordFiles(m); len(left) > 0 {
			t.Errorf("records left over: %q", left)
		}
		if _, err := m.host().Cgroups.Stat(reclaimDir); err == nil {
			t.Error("the scratch cgroup is left over")
		}
		checkPartitions(m)
		checkNoExclusive(m)
	})
}

// What a dead container left, and the kernel does not take back, concerns its CPUs only.
func TestCPUsThatCannotBeReleasedStopOnlyTheirHooks(t *testing.T) {
	f := newFake(t, false)
	running(f, ctrA, ctrB, ctrC)
	mustPin(f, ctrA, ScopeContainer, claimed("dead", "2-5", "0", PartitionRoot))
	f.end(ctrA)
	writes := f.root.around
	f.root.around = func(w Write, effect func() error) error {
		if strings.HasPrefix(w.File, podA+"/") {
			return syscall.EIO
		}
		return writes(w, effect)
	}
	mustPin(f, ctrB, ScopeContainer, claimed("next", "6-7", "0", PartitionRoot))
	if err := Pin(f.host(), ctrC, ScopeContainer, claimed("same", "5", "0", PartitionRoot)); !errors.Is(err, syscall.EIO) {
		t.Errorf("a claim of its CPUs: error %v, want EIO", err)
	}
	if _, err := Clear(f.host()); !errors.Is(err, syscall.EIO) {
		t.Errorf("Clear: error %v, want EIO", err)
	}
	if files := recordFiles(f); len(files) != 2 {
		t.Errorf("records %q, want those of the dead container and of the next", files)
	}
	f.root.around = writes
	mustPin(f, ctrC, ScopeContainer, claimed("same", "5", "0", PartitionRoot))
	checkPartitions(f, Holding{ctrB, parse("6-7"), "root"}, Holding{ctrC, parse("5"), "root"})
}

func TestKernelClearRemovesTheScratchCgroup(t *testing.T) {
	k := needKernel(t, ctrA)
	k.pin(ctrA, Pinning{CPUs: parse("2-3"), Partition: PartitionRoot})
	if err := makeReclaim(k.root); err != nil {
		t.Fatal(err)
	}
	k.end(ctrA)
	if live, err := Clear(k.host()); err != nil || len(live) > 0 {
		t.Errorf("live %q, error %v", live, err)
	}
	if _, err := k.root.Stat(reclaimDir); err == nil {
		t.Error("the scratch cgroup is left over")
	}
}
