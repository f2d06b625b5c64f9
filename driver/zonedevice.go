package driver

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func deviceName(node int) string { return fmt.Sprintf("numa-%d", node) }

// attributes leaves out what is not one for all of the zone.
func (z zone) attributes(machine *numa.Machine, config Config) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		attributeKind:           stringAttribute(kindZone),
		attributeThreadsPerCore: intAttribute(z.threadsPerCore(machine)),
		attributeCoreType:       stringAttribute(z.coreType(machine)),
		attributeExclusivity:    stringAttribute(string(config.Exclusivity)),
		attributeMemoryTier:     intAttribute(z.memoryTier(machine)),
	}
	if len(z.nodes) == 1 {
		for _, name := range numaNodeAttributes {
			attributes[name] = intAttribute(z.nodes[0])
		}
	}
	if socket, one := z.socket(machine); one {
		attributes[attributeSocket] = intAttribute(socket)
	}
	if z.l3 != nil {
		attributes[attributeL3] = intAttribute(*z.l3)
	}
	return attributes
}

// threadsPerCore is the largest number in its NUMA nodes, 0 without CPUs.
func (z zone) threadsPerCore(machine *numa.Machine) (threads int) {
	for _, id := range z.nodes {
		threads = max(threads, machine.ThreadsPerCore(id))
	}
	return threads
}

// coreType is that of all of its cores.
func (z zone) coreType(machine *numa.Machine) string {
	var all numa.CoreType
	for _, id := range z.nodes {
		node, _ := machine.Zone(id)
		switch {
		case node.CPUs.IsEmpty():
		case all == "" || all == node.CoreType:
			all = node.CoreType
		default:
			all = numa.MixedCores
		}
	}
	if all == "" {
		return noCoreType
	}
	return string(all)
}

// memoryTier is the slowest of its NUMA nodes.
func (z zone) memoryTier(machine *numa.Machine) (tier int) {
	for _, id := range z.nodes {
		node, _ := machine.Zone(id)
		tier = max(tier, ptr.Deref(node.MemoryTier, defaultMemoryTier))
	}
	return tier
}

// socket is that of all of its NUMA nodes, if it is one: a zone over several
// sockets is on none of them.
func (z zone) socket(machine *numa.Machine) (socket int, one bool) {
	for i, id := range z.nodes {
		node, _ := machine.Zone(id)
		if len(node.Sockets) != 1 || i > 0 && node.Sockets[0] != socket {
			return 0, false
		}
		socket = node.Sockets[0]
	}
	return socket, true
}

// capacity leaves out what the zone has none of: the API refuses a step that is
// larger than the capacity. What strays hold is withheld.
func (z zone) capacity(machine *numa.Machine, config Config, strays []Share) map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	capacity := make(map[resourceapi.QualifiedName]resourceapi.DeviceCapacity)
	held := z.heldBy(strays)
	add := func(name resourceapi.QualifiedName, amount, step uint64, format resource.Format) {
		amount -= min(held.bytes[name], amount)
		if steps := amount / max(step, 1); steps > 0 {
			capacity[name] = shared(steps*step, step, format)
		}
	}
	cpus := z.cpus.Difference(config.Reserved).Difference(held.cpus).Size()
	add(capacityCPU, uint64(cpus), uint64(z.threadsPerCore(machine)), resource.DecimalSI)
	if z.l3 != nil {
		return capacity
	}
	var memory uint64
	hugepages := make(map[uint64]uint64) // bytes by the size of a page
	for _, id := range z.nodes {
		node, _ := machine.Zone(id)
		memory += claimable(node, config.ReservedMemoryBytes)
		for _, pool := range node.Hugepages {
			hugepages[pool.PageBytes] += pool.TotalPages * pool.PageBytes
		}
	}
	for size, bytes := range hugepages {
		add(hugepagesName(size), bytes, size, resource.BinarySI)
	}
	add(capacityMemory, memory, memoryStepBytes, resource.BinarySI)
	return capacity
}

// claimable is the memory of a NUMA node that claims may have, without hugepages.
func claimable(node numa.Zone, reservedBytes uint64) uint64 {
	if node.MemoryBytes == nil {
		return 0
	}
	withheld := reservedBytes
	if node.Watermarks != nil {
		withheld += node.Watermarks.HighBytes
	}
	for _, pool := range node.Hugepages {
		withheld += pool.TotalPages * pool.PageBytes
	}
	return *node.MemoryBytes - min(withheld, *node.MemoryBytes)
}

// holding is what shares hold of a zone.
type holding struct {
	cpus  cpuset.Set
	bytes map[resourceapi.QualifiedName]uint64
}

// heldBy is what shares of other devices hold of the zone, at most: of which of
// its NUMA nodes memory is, nobody knows.
func (z zone) heldBy(shares []Share) holding {
	held := holding{bytes: make(map[resourceapi.QualifiedName]uint64)}
	mems := cpuset.New(z.nodes...)
	for _, share := range shares {
		if share.Device == z.device {
			continue // the scheduler counts it
		}
		held.cpus = held.cpus.Union(share.CPUs)
		if !share.Mems().Overlaps(mems) {
			continue
		}
		held.bytes[capacityMemory] += share.MemoryBytes
		for size, bytes := range share.HugepageBytes {
			held.bytes[resourceapi.QualifiedName(hugepagesPrefix+size)] += bytes
		}
	}
	return held
}

// shared is a capacity of which a request that does not name it takes nothing.
// Without the policy it would take everything.
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
	size := resource.NewQuantity(int64(pageBytes), resource.BinarySI)
	return resourceapi.QualifiedName(hugepagesPrefix + size.String())
}

func intAttribute(value int) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
}

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: &value}
}
