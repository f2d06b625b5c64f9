package zones

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// defaultMemoryTier is the kernel's tier of DRAM (include/linux/memory-tiers.h). A
// machine without tiers has only DRAM.
const defaultMemoryTier = 4

// SeveralNodes says when a zone lacks the attributes for a single NUMA node.
const SeveralNodes = "the zone has several NUMA nodes"

// Attribute is an attribute of zones.
type Attribute struct {
	Name   resourceapi.QualifiedName
	Absent string // when a zone lacks it; "" means never
	Means  string
	value  func(z Zone, machine *numa.Machine, settings Settings) any // string or int; nil if the zone lacks the attribute
}

// Attributes returns all attributes of zones, in the order in which people read them.
func Attributes() []Attribute {
	const means = "the same, under a key that drivers of other devices use"
	return []Attribute{
		{deviceclasses.AttributeKind, "", "zone, or isolated for CPUs of the boot parameter isolcpus=", kind},
		{deviceclasses.AttributeNUMANode, SeveralNodes, "NUMA node", numaNode},
		{deviceclasses.AttributeNUMANodeNet, SeveralNodes, means, numaNode},
		{deviceclasses.AttributeNUMANodeAMD, SeveralNodes, means, numaNode},
		{deviceclasses.AttributeSocket, "the zone is not on exactly one socket", "socket", socket},
		{deviceclasses.AttributeL3, "the zone is not a level-3 cache, and the node does not divide its caches", "id of the level-3 cache of its CPUs", l3},
		{deviceclasses.AttributeThreadsPerCore, "", "maximum number of threads of a core; 0 without CPUs", threadsPerCore},
		{deviceclasses.AttributeCoreType, "", "standard, performance, efficient or mixed; none without CPUs", coreType},
		{deviceclasses.AttributeExclusivity, "", "what keeps other tasks off the CPUs of claims: kernel, cooperative or none", exclusivity},
		{deviceclasses.AttributeMemoryTier, "", "the kernel's memory tier of the slowest NUMA node; 4 is DRAM", memoryTier},
	}
}

func (z Zone) attributes(machine *numa.Machine, settings Settings) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	attributes := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
	for _, attribute := range Attributes() {
		switch value := attribute.value(z, machine, settings).(type) {
		case string:
			attributes[attribute.Name] = resourceapi.DeviceAttribute{StringValue: &value}
		case int:
			attributes[attribute.Name] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(value))}
		}
	}
	return attributes
}

func kind(z Zone, _ *numa.Machine, _ Settings) any {
	if z.Isolated {
		return deviceclasses.KindIsolated
	}
	return deviceclasses.KindZone
}

func numaNode(z Zone, _ *numa.Machine, _ Settings) any {
	if len(z.Nodes) > 1 {
		return nil
	}
	return z.Nodes[0]
}

// socket returns the socket of all NUMA nodes of the zone. A zone over several sockets
// has no socket.
func socket(z Zone, machine *numa.Machine, _ Settings) any {
	var socket int
	for i, id := range z.Nodes {
		node, _ := machine.Zone(id)
		if len(node.Sockets) != 1 || i > 0 && node.Sockets[0] != socket {
			return nil
		}
		socket = node.Sockets[0]
	}
	return socket
}

func l3(z Zone, _ *numa.Machine, settings Settings) any {
	if z.L3 != nil {
		return *z.L3
	}
	if cache, lies := settings.L3[z.Device]; lies {
		return cache
	}
	return nil
}

func threadsPerCore(z Zone, machine *numa.Machine, _ Settings) any { return z.threadsPerCore(machine) }

// coreType returns the core type of all cores of the zone; mixed if they have several
// types.
func coreType(z Zone, machine *numa.Machine, _ Settings) any {
	var all numa.CoreType
	for _, id := range z.Nodes {
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
		return deviceclasses.NoCoreType
	}
	return string(all)
}

func exclusivity(_ Zone, _ *numa.Machine, settings Settings) any { return settings.Exclusivity }

// memoryTier returns the tier of the slowest NUMA node of the zone.
func memoryTier(z Zone, machine *numa.Machine, _ Settings) any {
	tier := 0
	for _, id := range z.Nodes {
		node, _ := machine.Zone(id)
		tier = max(tier, ptr.Deref(node.MemoryTier, defaultMemoryTier))
	}
	return tier
}
