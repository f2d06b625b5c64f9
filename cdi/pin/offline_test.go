package pin

import (
	"errors"
	"testing"
)

// While a CPU or a NUMA node of a claim is offline, the kernel cannot grant it. The keeper
// used to take the host's lock for each attempt, three times a second, and held up hooks.
func TestKeeperWaitsForWhatIsOffline(t *testing.T) {
	eachFake(t, func(m machine) {
		f := m.(*fake)
		running(m, ctrA, ctrB, ctrC)
		mustPin(m, ctrA, ScopePod, claimed("job", "4-5", "0-1", PartitionRoot))
		mustPin(m, ctrB, ScopeContainer, claimed("none", "6-7", "1", PartitionNone))
		mustPin(m, ctrC, ScopeContainer, claimed("memory", "", "2-3", PartitionNone))
		mustOnline(m, 5, false)
		mustOnline(m, 6, false)
		mustOnline(m, 7, false)
		f.mems = parse("0,2-3")
		f.settle()
		var lines []string
		k := keeper(m.host(), &lines)
		locks := 0
		k.Lock = func() (func(), error) { locks++; return func() {}, nil }
		pass := func(wantLocks, wantUnrepaired int, what string) {
			t.Helper()
			for range 3 {
				k.pass(t.Context(), &watch{})
			}
			if locks != wantLocks || k.Counts().Unrepaired != wantUnrepaired {
				t.Errorf("%s: %d locks and %d cgroups at fault, want %d and %d; the keeper says %q", what, locks, k.Counts().Unrepaired, wantLocks, wantUnrepaired, lines)
			}
			locks = 0
		}
		pass(0, 3, "CPUs 5-7 and NUMA node 1 are offline")
		// What can be repaired meanwhile is.
		m.write(podA+"/"+partitionFile, member)
		pass(1, 3, "the partition was taken away")
		checkLine(m, podA+"/"+partitionFile, "root")
		m.write(ctrC+"/"+memsFile, "0")
		pass(1, 3, "the memory nodes of another container were changed")
		checkLine(m, ctrC+"/"+memsFile, "2-3")
		for cpu := 5; cpu <= 7; cpu++ {
			mustOnline(m, cpu, true)
		}
		f.mems = parse("0-3")
		f.settle()
		pass(0, 0, "all is online again")
	})
}

// The kernel leaves NUMA nodes without memory out of cpuset.mems.effective. A socket or a
// machine of which some nodes have CPUs only is one zone, and its claims name all its nodes.
func TestNodesWithoutMemoryAreNoFault(t *testing.T) {
	eachFake(t, func(m machine) {
		f := m.(*fake)
		f.mems = parse("0,2-3")
		f.settle()
		running(m, ctrA, ctrB)
		mustPin(m, ctrA, ScopeContainer, claimed("socket", "4-5", "0-1", PartitionRoot))
		k := keeper(m.host(), nil)
		check := func(wantMems, wantFault string) {
			t.Helper()
			live, err := Inspect(f.root.Cgroups.FS(), f.root.Records.FS())
			if err != nil || len(live) != 1 || live[0].Fault != wantFault {
				t.Errorf("inspected %+v, %v, want the fault %q", live, err, wantFault)
			}
			if healthy := k.pass(t.Context(), &watch{}); healthy != (wantFault == "") {
				t.Errorf("the keeper finds all well: %t", healthy)
			}
			checkLine(m, ctrA+"/"+memsFile+".effective", wantMems)
		}
		check("0", "")
		f.mems = parse("0-3") // memory is added
		f.settle()
		check("0-1", "")
		f.mems = parse("2-3") // and all of it is removed
		f.settle()
		check("2-3", `cpuset.mems.effective is "2-3", want "0-1"`)
		if err := Pin(m.host(), ctrB, ScopeContainer, claimed("no memory", "6-7", "0-1", PartitionRoot)); err == nil {
			t.Error("a container gets memory of other NUMA nodes")
		}
	})
}

// A lock that another process holds says nothing about the cgroups.
func TestKeeperWithoutLockCountsWhatIsWrong(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "0", PartitionRoot))
	m.write(ctrA+"/"+partitionFile, member)
	k := keeper(m.host(), nil)
	k.Lock = func() (func(), error) { return nil, errors.New("another numa-pin has held it") }
	if healthy := k.pass(t.Context(), &watch{}); healthy || k.Counts().Unrepaired != 1 {
		t.Errorf("healthy %t with %d cgroups at fault, want 1", healthy, k.Counts().Unrepaired)
	}
	k.Lock = func() (func(), error) { return func() {}, nil }
	if healthy := k.pass(t.Context(), &watch{}); !healthy || k.Counts().Unrepaired != 0 {
		t.Errorf("healthy %t with %d cgroups at fault, want none", healthy, k.Counts().Unrepaired)
	}
}
