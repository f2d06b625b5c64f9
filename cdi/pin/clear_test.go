package pin

import (
	"slices"
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
