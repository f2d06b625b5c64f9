package pin

import (
	"testing"
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
