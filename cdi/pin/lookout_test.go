package pin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// lookout is one on the machine; what it has seen is done.
func lookout(m machine) *Lookout {
	m.Helper()
	h := m.host()
	l, err := NewLookout(h.Cgroups.Name(), h.Records.Name())
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(l.Close)
	settle(m, l)
	return l
}

// settle looks until nothing has changed.
func settle(m machine, l *Lookout) (sight Sight) {
	m.Helper()
	for range 5 {
		var err error
		if sight, err = l.Look(time.Now()); err != nil || sight.Unread != nil {
			m.Fatal(err, sight.Unread)
		}
		if !l.Changed() {
			return sight
		}
	}
	m.Fatal("something changes all the time")
	return sight
}

// Containers that end give inotify instances back.
func TestLookoutAndKeeperTryInotifyAgain(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	l := lookout(m)
	l.events.close()
	if !l.Changed() {
		t.Error("without inotify, nothing changes")
	}
	settle(m, l)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
	if !l.Changed() {
		t.Error("a record is not seen")
	}

	keeper, without := Keeper{}, watch{}
	beat, err := kernelfs.NewPulse(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	beat = keeper.listen(&without, beat)
	defer func() { _ = beat.Close() }()
	defer without.close()
	dir := t.TempDir()
	without.add(dir, dirMask)
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if beat.Wait(); !without.poll() {
		t.Error("a new file is not seen")
	}
}

// The fake has files, of which inotify reports what it would of a cgroup's.
func TestLookoutSeesWhatHappens(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA, sidecarA, ctrC)
	l := lookout(m)
	expect := func(what string, live, holdings int) {
		t.Helper()
		if !l.Changed() {
			t.Errorf("%s: nothing has changed", what)
		}
		if sight := settle(m, l); len(sight.Live) != live || len(sight.Holdings) != holdings {
			t.Errorf("%s: %d live cgroups, %d partitions, want %d and %d", what, len(sight.Live), len(sight.Holdings), live, holdings)
		}
	}
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
	expect("pinned", 1, 1)
	mustPin(m, ctrC, ScopeContainer, claimed("shared", "6", "", PartitionNone))
	expect("pinned without a partition", 2, 1)
	m.write(ctrA+"/"+partitionFile, member)
	expect("no partition any more", 2, 0)
	m.write(ctrC+"/"+cpusFile, "5")
	expect("other CPUs", 2, 0)
	if err := m.host().Records.Remove(filepath.Base(ctrC) + recordSuffix); err != nil {
		t.Fatal(err)
	}
	expect("record removed", 1, 0)
	m.end(ctrA)
	m.remove(podA)
	expect("ended", 0, 0)
}

// withoutEvents is a lookout to which no event is reported. After another look, it says each
// time that something has changed.
func withoutEvents(m machine) *Lookout {
	m.Helper()
	l := lookout(m)
	l.events.close()
	l.events = watch{complete: true, available: true, fd: -1, ids: map[string]int{l.records: 0}}
	m.Cleanup(func() { l.events = watch{} })
	return l
}

// No event says that a cgroup without exclusive CPUs has become a partition: it is followed
// only from then on.
func TestLookoutSeesAPartitionOfAnotherProgram(t *testing.T) {
	m := newFake(t, false)
	running(m, hostSlice)
	l := withoutEvents(m)
	m.write(hostSlice+"/"+cpusFile, "8-9")
	m.write(hostSlice+"/"+exclusiveFile, "8-9")
	if l.Changed() {
		t.Error("the cgroup is no partition yet")
	}
	m.write(hostSlice+"/"+partitionFile, "root")
	if !l.Changed() || l.Changed() {
		t.Error("a partition was made: want one change")
	}
}

// No event says that the kernel has taken a CPU away.
func TestLookoutReadsWhatNoEventReports(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "", PartitionRoot))
	l := withoutEvents(m)
	if l.Changed() {
		t.Error("something has changed")
	}
	if err := m.setOnline(3, false); err != nil {
		t.Fatal(err)
	}
	if !l.Changed() || l.Changed() {
		t.Error("a CPU is gone: want one change")
	}
	sight, err := l.Look(time.Now())
	if err != nil || len(sight.Live) != 1 || sight.Live[0].Fault == "" {
		t.Errorf("sight %+v, %v, want a fault", sight, err)
	}
}

func TestLookoutOnAHostWithoutPartitions(t *testing.T) {
	l, err := NewLookout(t.TempDir(), filepath.Join(t.TempDir(), "pins"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if sight, err := l.Look(time.Now()); err != nil || len(sight.Holdings)+len(sight.Live)+len(sight.Refusals) > 0 {
		t.Errorf("sight %+v, %v", sight, err)
	}
}

// TestKernelLookout shows that the kernel reports what the lookout relies on.
func TestKernelLookout(t *testing.T) {
	k := needKernel(t)
	running(k, ctrA, sidecarA)
	l := lookout(k)
	pinned := claimed("job", "2-3", "1", PartitionRoot)
	mustPin(k, ctrA, ScopeContainer, pinned)
	for _, row := range []struct {
		what string
		do   func()
	}{
		{"another partition", func() { k.write(ctrA+"/"+partitionFile, "isolated") }},
		{"no partition", func() { k.write(ctrA+"/"+partitionFile, member) }},
		{"other exclusive CPUs", func() { k.write(podA+"/"+exclusiveFile, "") }},
		{"last process gone", func() { k.end(ctrA) }},
	} {
		settle(k, l)
		row.do()
		time.Sleep(100 * time.Millisecond) // the kernel reports the end of processes later
		if !l.Changed() {
			t.Errorf("%s: nothing has changed", row.what)
		}
	}
	if len(settle(k, l).Live) != 0 {
		t.Error("the cgroup still counts")
	}
}

func TestLookoutSeesEntriesOfOtherDirectories(t *testing.T) {
	m := newFake(t, false)
	h, other := m.host(), t.TempDir()
	l, err := NewLookout(h.Cgroups.Name(), h.Records.Name(), other)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	settle(m, l)
	name := filepath.Join(other, "file")
	for _, change := range []func() error{
		func() error { return os.WriteFile(name, nil, 0o600) },
		func() error { return os.Rename(name, name+".new") },
		func() error { return os.Remove(name + ".new") },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if !l.Changed() {
			t.Error("nothing has changed")
		}
		settle(m, l)
	}
}
