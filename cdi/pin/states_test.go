package pin

import (
	"path"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// TestKernelTakesCPUsFromPartitions says in which ways this kernel takes CPUs from a
// partition, or makes it invalid, and for which of them it sends an event. The files that keeper
// and daemon read again must show all of them.
func TestKernelTakesCPUsFromPartitions(t *testing.T) {
	for name, take := range map[string]func(kernel){
		"written":              func(k kernel) { k.write(ctrA+"/"+partitionFile, member) },
		"exclusive":            func(k kernel) { k.write(ctrA+"/"+exclusiveFile, "") },
		"ancestor's exclusive": func(k kernel) { k.write(podA+"/"+exclusiveFile, "") },
		"fewer for ancestor":   func(k kernel) { k.write(podA+"/"+exclusiveFile, "3") },
		"sibling's cpus":       func(k kernel) { k.write(sidecarA+"/"+cpusFile, "3-4") },
		"one CPU offline": func(k kernel) {
			mustOnline(k, 2, false)
			k.Cleanup(func() { mustOnline(k, 2, true) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := needKernel(t)
			running(k, ctrA, sidecarA)
			mustPin(k, ctrA, ScopeContainer, claimed("job", "2-3", "1", PartitionRoot))
			list, _, err := loadRecords(k.records.FS())
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			var states kernelfs.FirstLines
			defer states.Close()
			states.Follow(k.root.FS(), stateFiles(list))
			events, err := newWatch()
			if err != nil {
				t.Fatal(err)
			}
			defer events.close()
			events.follow(nil, []string{path.Join(k.root.Name(), ctrA, partitionFile)})
			k.Cleanup(func() { k.write(ctrA+"/"+partitionFile, member) }) // Linux 6.12 loses CPUs of an invalid one
			take(k)
			time.Sleep(100 * time.Millisecond) // the kernel works on a CPU that goes
			partition, cpus := k.line(ctrA+"/"+partitionFile), k.line(ctrA+"/"+cpusFile+".effective")
			reported, read := events.poll(), states.Changed(k.root.FS())
			t.Logf("%s: partition %q with cpus %q; an event: %t, read: %t", name, partition, cpus, reported, read)
			if lost := partition != "root" || cpus != "2-3"; lost != read {
				t.Errorf("lost: %t, read: %t", lost, read)
			}
		})
	}
}
