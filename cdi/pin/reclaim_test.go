package pin

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// TestKernelLosesCPUs makes the writes after which Linux 6.12 or 7.2 loses CPUs of a
// partition. The keeper repairs the partition all the same, and if the container ends
// instead, the next one gets the CPUs. needKernel checks that the root cgroup has all
// CPUs again in the end.
func TestKernelLosesCPUs(t *testing.T) {
	want := Pinning{CPUs: parse("2-3"), Partition: PartitionRoot}
	for name, writes := range map[string][]Write{
		"exclusive, then fewer cpus":         {{ctrA + "/" + exclusiveFile, ""}, {ctrA + "/" + cpusFile, "3"}},
		"ancestor's exclusive, then member":  {{podA + "/" + exclusiveFile, ""}, {ctrA + "/" + partitionFile, member}},
		"exclusive, then member, then fewer": {{ctrA + "/" + exclusiveFile, ""}, {ctrA + "/" + partitionFile, member}, {ctrA + "/" + cpusFile, "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := needKernel(t, ctrA, ctrC, reclaimDir)
			t.Cleanup(func() { k.remove(reclaimDir) })
			attack := func() {
				k.pin(ctrA, want)
				for _, w := range writes {
					k.write(w.File, w.Value)
				}
			}
			attack()
			logLost(k, want)
			for _, line := range keep(k) {
				t.Log(line)
			}
			if err := verify(k.root.FS(), ctrA, want); err != nil {
				t.Errorf("after a repair: %v", err)
			}
			attack()
			k.end(podA)
			for _, line := range keep(k) {
				t.Log(line)
			}
			logLost(k, want)
			k.pin(ctrC, want)
			k.end(ctrC)
			keep(k)
		})
	}
}

// TestKernelReclaimWasKilled is the scratch cgroup as a killed reclaim may leave it.
func TestKernelReclaimWasKilled(t *testing.T) {
	k := needKernel(t, ctrA, reclaimDir)
	t.Cleanup(func() { k.remove(reclaimDir) })
	for _, w := range []Write{{exclusiveFile, "2"}, {cpusFile, "2"}, {partitionFile, "root"}} {
		k.write(reclaimDir+"/"+w.File, w.Value)
	}
	t.Log("the scratch cgroup is ", k.line(reclaimDir+"/"+partitionFile)) // invalid up to Linux 6.19 if a sibling has the CPU in its cpuset.cpus
	k.pin(ctrA, Pinning{CPUs: parse("2-3"), Partition: PartitionRoot})
	k.expect(reclaimDir+"/"+partitionFile, member)
	k.end(ctrA)
	k.write(reclaimDir+"/"+exclusiveFile, "4")
	keep(k) // releases what has ended, and looks at the scratch cgroup
	k.expect(reclaimDir+"/"+exclusiveFile, "")
}

func logLost(k kernel, want Pinning) {
	k.Helper()
	cpus, err := lost(k.root.FS(), want.CPUs)
	k.Logf("the kernel has lost cpus %q, %v", cpus, err)
}

// The kernel refuses CPUs of isolcpus= in a partition root, so such a partition did not get
// them back. A claim without a partition did not get back any CPU: the kernel refuses nothing
// there.
func TestReclaimLostCPUs(t *testing.T) {
	for name, claim := range map[string]Claim{
		"isolcpus":                   claimed("job", "6-7", "0", PartitionIsolated),
		"isolcpus without partition": claimed("job", "6-7", "0", PartitionNone),
		"both, isolated":             claimed("job", "4-7", "0", PartitionIsolated),
		"both without partition":     claimed("job", "4-7", "0", PartitionNone),
		"ordinary":                   claimed("job", "4-5", "0", PartitionRoot),
		"ordinary, isolated":         claimed("job", "4-5", "0", PartitionIsolated),
		"ordinary without partition": claimed("job", "4-5", "0", PartitionNone),
		"a part without a partition": claimed("job", "3-4", "0", PartitionNone),
	} {
		t.Run(name, func(t *testing.T) {
			eachFake(t, func(m machine) {
				f := m.(*fake)
				f.isolcpus = parse("6-7")
				f.request(f.all.Difference(f.isolcpus))
				running(m, ctrA, ctrB)
				m.create(reclaimDir)
				mustPin(m, ctrB, ScopeContainer, claimed("other", "9", "0", PartitionRoot))
				lose := func() { f.lost = parse("4-7"); f.settle() }
				lose()
				mustPin(m, ctrA, ScopeContainer, claim)
				checkLine(m, ctrA+"/"+cpusFile+".effective", claim.CPUs.String())
				if again := f.lost.Intersection(claim.CPUs); !again.IsEmpty() {
					t.Errorf("cpus %s are still lost", again)
				}
				if left := partitions(m); len(left) > 2 || left[len(left)-1].Cgroup != ctrB {
					t.Errorf("partitions %v", left)
				}
				m.write(ctrA+"/"+partitionFile, member)
				m.write(ctrA+"/"+exclusiveFile, "")
				lose()
				if lines := keep(m); len(lines) != 1 || !strings.HasPrefix(lines[0], "repaired cgroup "+ctrA) {
					t.Errorf("the keeper says %q", lines)
				}
				checkLine(m, ctrA+"/"+cpusFile+".effective", claim.CPUs.String())
				f.lost = cpuset.Set{}
				f.settle()
				checkEmptied(m)
			})
		})
	}
}

// Without the boot parameter, what is offline is not lost: reclaim would take the target's
// other CPUs away and get nothing.
func TestReclaimLeavesOfflineCPUs(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	m.create(reclaimDir)
	mustPin(m, ctrA, ScopeContainer, claimed("job", "4-5", "0", PartitionRoot))
	mustOnline(m, 5, false)
	h := m.host()
	h.around = func(w Write, _ func() error) error { t.Errorf("it writes %v", w); return nil }
	if reclaimed, err := h.reclaim(ctrA, parse("4-5")); reclaimed || err != nil {
		t.Errorf("reclaimed %t, %v, want nothing to do", reclaimed, err)
	}
}
