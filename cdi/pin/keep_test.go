package pin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// started is a keeper at work, with the host's lock and inotify.
type started struct {
	lock  string // the host's
	mutex sync.Mutex
	lines []string
}

func startKeeper(m machine) *started {
	s := started{lock: m.(interface{ TempDir() string }).TempDir() + "/lock"}
	k := Keeper{
		Host: m.host(),
		Lock: func() (func(), error) { return Lock(s.lock) },
		Log: func(line string) {
			s.mutex.Lock()
			defer s.mutex.Unlock()
			s.lines = append(s.lines, line)
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { k.Run(ctx) })
	m.Cleanup(func() { cancel(); done.Wait() })
	return &s
}

// mustPin is what a hook does beside the keeper.
func (s *started) mustPin(m machine, container string, claim Claim) {
	m.Helper()
	unlock, err := Lock(s.lock)
	if err != nil {
		m.Fatal(err)
	}
	defer unlock()
	mustPin(m, container, ScopeContainer, claim)
}

func (s *started) log() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return strings.Join(s.lines, "\n")
}

// within waits until a line reads so, and returns how long that took.
func within(m machine, limit time.Duration, file, want string) time.Duration {
	m.Helper()
	begin := time.Now()
	for {
		got, err := readLine(m.host().Cgroups.FS(), file)
		if took := time.Since(begin); err == nil && got == want {
			return took
		} else if took > limit {
			m.Fatalf("%s is %q (%v) after %s, want %q", file, got, err, took, want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// A folder is no cgroup, but inotify is the same.
func TestKeeperSeesNewRecordsAndWrites(t *testing.T) {
	m := newFake(t, false)
	m.root.around = nil // files only: the keeper runs beside the test
	running(m, ctrA)
	s := startKeeper(m)
	if err := m.root.save(record{Boot: "this boot", Cgroup: ctrA, Scope: ScopeContainer, Claims: []Claim{claimed("job", "", "1", PartitionNone)}}); err != nil {
		t.Fatal(err)
	}
	within(m, time.Minute, ctrA+"/"+memsFile, "1")
	if err := writeKernelFile(m.root.Cgroups, ctrA+"/"+memsFile, "0"); err != nil {
		t.Fatal(err)
	}
	within(m, time.Minute, ctrA+"/"+memsFile, "1")
	if log := s.log(); strings.Count(log, "should have mems 1") != 1 { // nothing computes mems.effective here
		t.Errorf("the keeper says\n%s", log)
	}
}

func TestKeeperSeesQuotas(t *testing.T) {
	m := newFake(t, false)
	m.root.around = nil
	running(m, ctrA)
	limits := map[string]string{ctrA: "200000 100000", podA: "200000 100000"}
	s := startKeeper(m)
	if err := m.root.save(record{Boot: "this boot", Cgroup: ctrA, Scope: ScopeContainer, Claims: []Claim{liftable(claimed("job", "2-3", "", PartitionNone))}}); err != nil {
		t.Fatal(err)
	}
	within(m, time.Minute, ctrA+"/"+cpusFile, "2-3")
	for range 2 {
		for cgroup, line := range limits {
			if err := writeKernelFile(m.root.Cgroups, cgroup+"/"+quotaFile, line); err != nil {
				t.Fatal(err)
			}
			within(m, time.Minute, cgroup+"/"+quotaFile, "max 100000")
		}
	}
	if log := s.log(); strings.Count(log, "lifted a CPU quota") != 2 { // once each, for a minute
		t.Errorf("the keeper says\n%s", log)
	}
}

// TestKernelKeeperLiftsQuotas logs how long that takes.
func TestKernelKeeperLiftsQuotas(t *testing.T) {
	k := needKernel(t)
	running(k, ctrA)
	limits := map[string]string{ctrA: "200000 100000", podA: "200000 100000"}
	limit(k, limits)
	s := startKeeper(k)
	s.mustPin(k, ctrA, liftable(claimed("job", "2-3", "1", PartitionRoot)))
	for range 3 {
		checkQuotas(k, map[string]string{ctrA: "max 100000", podA: "max 100000"})
		limit(k, limits)
		for cgroup := range limits {
			t.Logf("%s after %s", cgroup, within(k, 20*time.Second, cgroup+"/"+quotaFile, "max 100000"))
		}
	}
}

func TestKeeperWithoutRecordsDoesNothing(t *testing.T) {
	m := newFake(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	k := Keeper{
		Host: m.host(),
		Lock: func() (func(), error) { t.Error("locked"); return func() {}, nil },
		Log:  func(line string) { t.Error(line) },
	}
	k.Run(ctx)
}

// TestKernelKeeperRepairs logs how long a repair takes: within a second is
// promised, but a node that is emulated beside other work may take its time.
func TestKernelKeeperRepairs(t *testing.T) {
	const limit = 20 * time.Second
	for name, breaks := range map[string]func(kernel){
		"partition":            func(k kernel) { k.write(ctrA+"/"+partitionFile, member) },
		"exclusive":            func(k kernel) { k.write(ctrA+"/"+exclusiveFile, "") },
		"ancestor's exclusive": func(k kernel) { k.write(podA+"/"+exclusiveFile, "") },
		"sibling's cpus":       func(k kernel) { k.write(sidecarA+"/"+cpusFile, "3-4") },
		"offline": func(k kernel) {
			mustOnline(k, 2, false)
			t.Log("last CPU offline: ", k.setOnline(3, false)) // EBUSY on some kernels, as it is the last one
			time.Sleep(300 * time.Millisecond)
			mustOnline(k, 2, true)
			mustOnline(k, 3, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := needKernel(t)
			running(k, ctrA, sidecarA, ctrC)
			s := startKeeper(k)
			defer func() {
				if t.Failed() {
					t.Log(s.log())
				}
			}()
			s.mustPin(k, ctrA, claimed("job", "2-3", "1", PartitionRoot))
			s.mustPin(k, ctrC, claimed("other", "6", "0", PartitionIsolated))
			var slowest time.Duration
			for range 3 {
				breaks(k)
				time.Sleep(5 * time.Millisecond) // the kernel's own work on a CPU that comes back
				slowest = max(slowest, within(k, limit, ctrA+"/"+partitionFile, "root"))
				within(k, limit, ctrA+"/"+cpusFile+".effective", "2-3")
				within(k, limit, podA+"/"+exclusiveFile, "2-3")
				k.write(sidecarA+"/"+cpusFile, "5")
			}
			for _, dir := range []string{podA, ctrC} {
				k.end(dir)
			}
			within(k, limit, "pintest-pods/"+exclusiveFile, "")
			within(k, limit, cpusFile+".effective", k.all.String())
			t.Logf("slowest repair %s", slowest)
		})
	}
}

// TestKernelKeeperPromotes: the claim's second pod goes.
func TestKernelKeeperPromotes(t *testing.T) {
	const limit = 20 * time.Second
	k := needKernel(t)
	running(k, ctrA, ctrB)
	s := startKeeper(k)
	job := claimed("job", "2-3", "1", PartitionRoot)
	s.mustPin(k, ctrA, job)
	for range 3 {
		s.mustPin(k, ctrB, job)
		k.expect(ctrA+"/"+partitionFile, member)
		k.end(ctrB)
		t.Logf("promoted after %s", within(k, limit, ctrA+"/"+partitionFile, "root"))
		k.start(ctrB)
	}
}

// TestKernelKeeperIsFrugal logs what a keeper costs while nothing happens.
func TestKernelKeeperIsFrugal(t *testing.T) {
	k := needKernel(t)
	for i := range 14 {
		dir := fmt.Sprintf("pintest-pods/pod%d/c%d", i, i)
		running(k, dir)
		mustPin(k, dir, ScopeContainer, claimed(fmt.Sprint(i), fmt.Sprint(i+1), "0", PartitionRoot))
	}
	s := startKeeper(k)
	time.Sleep(time.Second)
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	const watched = 4 * time.Second
	time.Sleep(watched)
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	spent := time.Duration(after.Utime.Nano() - before.Utime.Nano() + after.Stime.Nano() - before.Stime.Nano())
	t.Logf("14 partitions: %s of CPU in %s", spent, watched)
	if log := s.log(); log != "" {
		t.Errorf("the keeper says\n%s", log)
	}
}

// After a power failure a record may be empty. It is of no cgroup that exists. A record of
// another build says which boot it is of.
func TestUnreadableRecordsOfAnotherBootAreRemoved(t *testing.T) {
	m := newFake(t, false)
	records := m.host().Records
	booted := time.Now()
	for name, age := range map[string]time.Duration{"old.json": time.Hour, "torn.json": time.Minute, "now.json": -time.Second, "note.txt": time.Hour} {
		if err := records.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(records.Name()+"/"+name, booted, booted.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"other.json": `{"boot":"this boot","version":2}`, "earlier.json": `{"boot":"earlier boot","version":2}`} { // of other builds
		if err := records.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(records.Name()+"/other.json", booted, booted.Add(-time.Hour)); err != nil { // the clock was set since
		t.Fatal(err)
	}
	running(m, ctrA)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
	if err := os.Chtimes(records.Name()+"/a.json", booted, booted.Add(-time.Hour)); err != nil { // the clock was wrong
		t.Fatal(err)
	}
	var lines []string
	k := keeper(m.host(), &lines)
	k.Booted = booted
	if err := k.removeUnreadable(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(recordFiles(m), " "), "a.json note.txt now.json other.json"; got != want {
		t.Errorf("records %s, want %s", got, want)
	}
	if len(lines) != 3 || !strings.Contains(strings.Join(lines, " "), `removed record "old.json" of another boot, which could not be read: `) {
		t.Errorf("the keeper says %q", lines)
	}
}

// Other work of the keeper's process waits for events, too.
func TestKeeperDoesOtherWorkWhenItsDirectoryChanges(t *testing.T) {
	m := newFake(t, false)
	var lines []string
	k := keeper(m.host(), &lines)
	other, called := t.TempDir(), make(chan struct{}, 100)
	k.Also, k.AlsoOn = func() error { called <- struct{}{}; return nil }, []string{other}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	begin := time.Now()
	go func() { k.Run(ctx); close(ended) }()
	<-called // at the start
	// By itself, the keeper does this work each alsoEvery.
	more := func() bool { return len(called) > int(time.Since(begin)/alsoEvery) }
	for !more() && time.Since(begin) < time.Minute {
		time.Sleep(10 * time.Millisecond)
		// The keeper sets its watch after the first call, so a change may come too early.
		if err := os.WriteFile(fmt.Sprintf("%s/%d", other, time.Now().UnixNano()), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !more() {
		t.Errorf("nothing happened for %s after entries came", time.Since(begin))
	}
	cancel()
	<-ended
}
