package nodestate

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// Every online CPU is in exactly one core of one cache, whatever the machine.
func TestLayoutHasEachCPUOnce(t *testing.T) {
	for _, preset := range fake.Presets() {
		machine, err := numa.Read(preset.Machine.FS())
		if err != nil {
			t.Fatal(err)
		}
		var all cpuset.Set
		count := 0
		last := -1
		for _, cache := range LayoutOf(machine).Caches {
			if cache.NUMANode < last {
				t.Errorf("%s: NUMA node %d comes after %d", preset.Name, cache.NUMANode, last)
			}
			last = cache.NUMANode
			zone, _ := machine.Zone(cache.NUMANode)
			for _, cpus := range cache.Cores {
				all, count = all.Union(cpus), count+cpus.Size()
				if !cpus.IsSubsetOf(zone.CPUs) {
					t.Errorf("%s: core %s is not on NUMA node %d", preset.Name, cpus, cache.NUMANode)
				}
			}
		}
		if all != machine.Online || count != all.Size() {
			t.Errorf("%s: %d CPUs %s, want %s", preset.Name, count, all, machine.Online)
		}
	}
}

func TestLayoutIsByL3(t *testing.T) {
	for name, want := range map[string]struct {
		caches int
		first  string // core of the first cache
	}{"rig": {4, "0-1"}, "512cpus": {32, "0,256"}, "intel-2s-snc2": {4, "0,48"}, "no-numa": {1, "0,4"}} {
		layout := LayoutOf(sample.Machine(t, name))
		if got := layout.Caches[0].Cores[0].String(); len(layout.Caches) != want.caches || got != want.first {
			t.Errorf("%s: %d caches, first core %s, want %d and %s", name, len(layout.Caches), got, want.caches, want.first)
		}
	}
}
