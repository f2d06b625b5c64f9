// Package hwloc holds the reader of package numa to hwloc, which reads the same
// files with code of its own: on every recorded machine both must find the same
// zones, CPUs, cores, caches, distances, memory and PCI functions, or
// differences says why they do not.
package hwloc

import (
	"os"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestReadsWhatHwlocReads(t *testing.T) {
	program := lookup(t)
	var names []string
	for _, recorded := range files.RecordedMachines(t) {
		names = append(names, recorded.Name)
		t.Run(recorded.Name, func(t *testing.T) {
			t.Parallel()
			folder := recorded.Unpack(t)
			machine, err := numa.Read(os.DirFS(folder))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, recorded.Name, factsOf(machine), lstopo(t, program, folder).facts())
		})
	}
	for name := range explained {
		if !slices.Contains(names, name) {
			t.Errorf("differences of %s are explained, but there is no such recorded machine", name)
		}
	}
	t.Log(version(t, program))
}

func compare(t *testing.T, name string, ours, hwlocs facts) {
	t.Helper()
	kinds := []kind{
		onlineCPUs, strayCPUs, zones, zoneCPUs, zoneMemory, hugepages, distances, sockets, cores, l2s, l3s,
		functions, functionCPUs,
	}
	left := slices.Clone(explained[name])
	for _, about := range kinds {
		onlyOurs, onlyHwlocs := ours.without(hwlocs, about), hwlocs.without(ours, about)
		i := slices.IndexFunc(left, func(d difference) bool {
			return d.about == about && d.ours == onlyOurs && d.hwloc == onlyHwlocs
		})
		switch {
		case i >= 0:
			t.Logf("%s differ: %s\nours  %s\nhwloc %s", about, left[i].why, onlyOurs, onlyHwlocs)
			left = slices.Delete(left, i, i+1)
		case onlyOurs != onlyHwlocs: // both empty where they agree
			t.Errorf("%s differ, and nothing explains it:\nours  %s\nhwloc %s", about, onlyOurs, onlyHwlocs)
		}
	}
	for _, gone := range left {
		t.Errorf("%s do not differ as explained:\nours  %s\nhwloc %s\nbecause %s", gone.about, gone.ours, gone.hwloc, gone.why)
	}
}
