package driver

import (
	"reflect"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// A balloon that takes and gives memory a little at a time changes what the node publishes
// once a step. What is published is never more than there is.
func TestMemoryOfABalloonIsPublishedInSteps(t *testing.T) {
	const mib = 1 << 20
	driver := newDisk(t).open()
	set := func(bytes uint64) (counts uint64) {
		t.Helper()
		machine := testMachine()
		machine.Zones[2].MemoryBytes = &bytes
		driver.SetMachine(machine)
		counts = *driver.Machine().Zones[2].MemoryBytes
		if counts > bytes || bytes-counts >= 2*memoryStep {
			t.Fatalf("%d bytes of memory count as %d", bytes, counts)
		}
		return counts
	}
	whole := uint64(1<<30 - 300<<10) // as MemTotal is: no multiple of anything
	last, states := set(whole), 0
	for i := range 600 {
		taken := uint64(i % 200)
		if taken > 100 {
			taken = 200 - taken
		}
		if counts := set(whole - taken*mib); counts != last {
			last, states = counts, states+1
		}
	}
	if states > 2 {
		t.Errorf("a balloon that takes and gives at most 100 MiB made %d new states", states)
	}
	if more := last + 2*memoryStep; set(more) != more {
		t.Error("a block of 128 MiB that comes is not seen")
	}
}

func TestMemoryOfNodesThatComeAndGo(t *testing.T) {
	small, large := uint64(1<<30+1), uint64(3<<30+5)
	node := func(id int, bytes *uint64) numa.Zone { return numa.Zone{ID: id, MemoryBytes: bytes} }
	before := numa.Machine{Zones: []numa.Zone{node(0, &large), node(1, nil), node(3, &small)}}
	now := numa.Machine{Zones: []numa.Zone{node(0, &small), node(1, &large), node(2, &small), node(3, nil)}}
	floor := uint64(1 << 30)
	want := []numa.Zone{node(0, &floor), node(1, &large), node(2, &small), node(3, nil)}
	if got := withSteadyMemory(before, now); !reflect.DeepEqual(got.Zones, want) {
		t.Errorf("got %+v, want %+v", got.Zones, want)
	}
	if *now.Zones[0].MemoryBytes != small {
		t.Error("the machine that was read is changed")
	}
}
