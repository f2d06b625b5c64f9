package pin

import "testing"

// failpoints are what may be killed at any effect, and what was there before.
var failpoints = []struct {
	name  string
	setUp func(machine) // nil: only the running containers
	job   job
}{
	{"container", nil, job{Container: ctrA, Scope: ScopeContainer, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"pod", nil, job{Container: ctrA, Scope: ScopePod, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"second claim", func(m machine) {
		mustPin(m, ctrA, ScopeContainer, claimed("first", "4", "0", PartitionIsolated))
	}, job{Container: ctrA, Scope: ScopeContainer, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"downgrade", func(m machine) {
		mustPin(m, ctrB, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
	}, job{Container: ctrA, Scope: ScopePod, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"after a dead container", func(m machine) {
		mustPin(m, ctrB, ScopeContainer, claimed("dead", "2-5", "1", PartitionRoot))
		m.end(ctrB)
	}, job{Container: ctrA, Scope: ScopeContainer, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"quota", func(m machine) {
		limit(m, map[string]string{ctrA: "200000 100000", podA: "200000 100000"})
	}, job{Container: ctrA, Scope: ScopePod, Claim: liftable(claimed("job", "2-3", "1", PartitionRoot))}},
	{"keeper that lifts quotas", func(m machine) {
		mustPin(m, ctrA, ScopeContainer, liftable(claimed("job", "2-3", "1", PartitionRoot)))
		limit(m, map[string]string{ctrA: "200000 100000", podA: "200000 100000"})
		m.write(ctrA+"/"+memsFile, "0")
	}, job{Keep: true, Container: ctrA, Scope: ScopeContainer, Claim: liftable(claimed("job", "2-3", "1", PartitionRoot))}},
	{"keeper that repairs", func(m machine) {
		mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
		m.write(ctrA+"/"+partitionFile, member)
		m.write(ctrA+"/"+exclusiveFile, "")
		m.write(ctrA+"/"+memsFile, "0")
	}, job{Keep: true, Container: ctrA, Scope: ScopeContainer, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"keeper that promotes", func(m machine) {
		mustPin(m, ctrB, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
		mustPin(m, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
		m.end(ctrB)
	}, job{Keep: true, Container: ctrA, Scope: ScopeContainer, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
	{"keeper that buries", func(m machine) {
		mustPin(m, ctrB, ScopePod, claimed("dead", "2-5", "1", PartitionRoot))
		m.remove(podB)
	}, job{Keep: true, Container: ctrA, Scope: ScopeContainer, Claim: claimed("job", "2-3", "1", PartitionRoot)}},
}

type recovery struct {
	name string
	run  func(machine, job)
}

// recoveries are who comes next after the kill.
var recoveries = []recovery{
	{"the same again", func(m machine, j job) {
		mustPin(m, j.Container, j.Scope, j.Claim)
		keep(m)
		checkServed(m, j)
	}},
	{"another container, no keeper", func(m machine, j job) {
		m.remove(podA)
		m.remove(podB)
		running(m, sidecarA)
		j.Container = sidecarA
		mustPin(m, j.Container, j.Scope, j.Claim)
		checkServed(m, j)
	}},
	{"another claim with these cpus, no keeper", func(m machine, j job) {
		m.remove(podA)
		m.remove(podB)
		running(m, "pintest-pods/burstable/podD/d")
		j.Container, j.Claim = "pintest-pods/burstable/podD/d", claimed("next", "2-6", "0", PartitionRoot)
		mustPin(m, j.Container, ScopeContainer, j.Claim)
		j.Scope = ScopeContainer
		checkServed(m, j)
	}},
	{"the keeper while the container lives", func(m machine, _ job) {
		keep(m)
		checkAllLive(m)
	}},
	{"the keeper when the container is gone", func(m machine, _ job) {
		m.remove(podA)
		m.remove(podB)
	}},
}

// checkServed checks that the job's container has its claim's CPUs to itself,
// or without partition while another pod has the claim.
func checkServed(m machine, j job) {
	m.Helper()
	checkAllLive(m)
	checkLine(m, ctrC+"/"+partitionFile, "root")
	got := parse(m.line(j.Container + "/" + cpusFile + ".effective"))
	if !j.Claim.CPUs.IsSubsetOf(got) {
		m.Errorf("%s has cpus %s, want %s", j.Container, got, j.Claim.CPUs)
	}
}

func checkAllLive(m machine) {
	m.Helper()
	list, err := Inspect(m.host().Cgroups.FS(), m.host().Records.FS())
	if err != nil {
		m.Error(err)
	}
	for _, l := range list {
		if l.Fault != "" {
			m.Errorf("%s: %s", l.Cgroup, l.Fault)
		}
	}
	records, _, err := loadRecords(m.host().Records.FS())
	if err != nil {
		m.Error(err)
	}
	for _, r := range records {
		if due, err := quotaWrites(m.host().Cgroups.FS(), r); err != nil || len(due) > 0 {
			m.Errorf("quotas of %s: %v (%v)", r.Cgroup, due, err)
		}
	}
}

// killEverywhere kills the job after each of its effects, and has each of the
// recoveries for that step make it good.
func killEverywhere(m machine, setUp func(machine), job job, after func(step int) []recovery) (steps int) {
	for ; ; steps++ {
		for _, recovery := range after(steps) {
			running(m, ctrA, ctrB, ctrC)
			mustPin(m, ctrC, ScopeContainer, claimed("bystander", "7", "0", PartitionRoot))
			if setUp != nil {
				setUp(m)
			}
			killed := m.killed(steps, job)
			if killed {
				recovery.run(m, job)
			}
			checkEmptied(m)
			m.renew("pintest-pods")
			if m.Failed() {
				m.Fatalf("killed after %d effects, then %s", steps, recovery.name)
			}
			if !killed {
				return steps
			}
		}
	}
}

func TestKilledAtEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	all := func(int) []recovery { return recoveries }
	for _, failpoint := range failpoints {
		t.Run(failpoint.name, func(t *testing.T) {
			if steps := killEverywhere(newFake(t, true), failpoint.setUp, failpoint.job, all); steps < 3 {
				t.Errorf("only %d steps", steps)
			}
		})
	}
}

// On an emulated node each kill takes a second: the recoveries take turns.
func TestKernelKilledAtEveryStep(t *testing.T) {
	for i, failpoint := range failpoints {
		t.Run(failpoint.name, func(t *testing.T) {
			steps := killEverywhere(needKernel(t), failpoint.setUp, failpoint.job, func(step int) []recovery {
				turn := (i + step) % len(recoveries)
				return recoveries[turn : turn+1]
			})
			t.Logf("%d steps", steps)
		})
	}
}
