package zones

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const memoryStepBytes = 1 << 20

// capacity returns the capacities of the zone. It leaves out those of less than one
// step: the API refuses a step that is larger than the capacity.
func (z Zone) capacity(machine *numa.Machine, settings Settings, held []Held) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	capacity := make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
	heldCPUs, heldBytes := z.heldOf(held)
	add := func(name resourceapi.QualifiedName, amount, step uint64, format resource.Format) {
		amount -= min(heldBytes[name], amount)
		if steps := amount / max(step, 1); steps > 0 {
			capacity[name] = shared(steps*step, step, format)
		}
	}
	cpus := z.CPUs.Difference(settings.Reserved).Difference(heldCPUs).Size()
	add(deviceclasses.CapacityCPU, uint64(cpus), uint64(z.ThreadsPerCore(machine)), resource.DecimalSI)
	for _, amount := range z.Amounts(machine, settings.ReservedMemory) {
		claimable := amount.TotalBytes - amount.ReservedBytes
		if amount.PageBytes == 0 {
			add(deviceclasses.CapacityMemory, claimable, memoryStepBytes, resource.BinarySI)
		} else {
			add(hugepagesName(amount.PageBytes), claimable, amount.PageBytes, resource.BinarySI)
		}
	}
	if len(capacity) > 0 {
		for _, group := range settings.Groups {
			capacity[deviceclasses.GroupCapacity(group)] = shared(1, 1, resource.DecimalSI)
		}
	}
	return capacity
}

// heldOf returns what claims hold of the zone under other names. Memory is an upper
// bound, because it is not known which of the claim's NUMA nodes the memory is on.
func (z Zone) heldOf(held []Held) (cpus cpuset.Set, bytes map[resourceapi.QualifiedName]uint64) {
	bytes = make(map[resourceapi.QualifiedName]uint64)
	mems := cpuset.New(z.Nodes...)
	for i := range held {
		if held[i].Device == z.Device {
			continue // the scheduler counts it
		}
		cpus = cpus.Union(held[i].CPUs)
		if !held[i].Mems.Overlaps(mems) {
			continue
		}
		bytes[deviceclasses.CapacityMemory] += held[i].MemoryBytes
		for size, amount := range held[i].HugepageBytes {
			bytes[deviceclasses.CapacityHugepagesPrefix+resourceapi.QualifiedName(size)] += amount
		}
	}
	return cpus, bytes
}

// shared returns a capacity with a request policy. A request that does not name the
// capacity takes nothing of it; without the policy, it would take all of it.
func shared(amount, step uint64, format resource.Format) resourceapi.DeviceCapacity {
	return resourceapi.DeviceCapacity{
		Value: *resource.NewQuantity(int64(amount), format),
		RequestPolicy: &resourceapi.CapacityRequestPolicy{
			Default: resource.NewQuantity(0, format),
			ValidRange: &resourceapi.CapacityRequestPolicyRange{
				Min:  resource.NewQuantity(0, format),
				Step: resource.NewQuantity(int64(step), format),
			},
		},
	}
}

func hugepagesName(pageBytes uint64) resourceapi.QualifiedName {
	return deviceclasses.CapacityHugepagesPrefix + resourceapi.QualifiedName(sizeName(pageBytes))
}

// sizeName returns the name of a size of hugepages, as in "2Mi".
func sizeName(pageBytes uint64) string {
	return resource.NewQuantity(int64(pageBytes), resource.BinarySI).String()
}
