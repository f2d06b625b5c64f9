package driver

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// memoryStep is the step in which the driver follows the memory of a NUMA node that
// changes while it runs. It is half of the smallest block of memory that Linux can add or
// remove, so the driver always notices a block that is added.
const memoryStep = 64 << 20

// withSteadyMemory returns the machine as it is now, but with the sizes of memory that
// the driver uses. A hypervisor with a balloon changes MemTotal all the time, and the
// driver would write each new size to the API server.
func withSteadyMemory(before, now numa.Machine) numa.Machine {
	known := make(map[int]uint64, len(before.Zones))
	for i := range before.Zones {
		if bytes := before.Zones[i].MemoryBytes; bytes != nil {
			known[before.Zones[i].ID] = *bytes
		}
	}
	now.Zones = slices.Clone(now.Zones)
	for i := range now.Zones {
		if used, found := known[now.Zones[i].ID]; found && now.Zones[i].MemoryBytes != nil {
			now.Zones[i].MemoryBytes = new(steadyBytes(used, *now.Zones[i].MemoryBytes))
		}
	}
	return now
}

// steadyBytes returns the size that the driver uses if it used before until now, and the
// machine has now. The result is never more than now, and at most two steps less.
func steadyBytes(before, now uint64) uint64 {
	switch {
	case now < before:
		return now - now%memoryStep
	case now-before >= 2*memoryStep:
		return now
	}
	return before
}
