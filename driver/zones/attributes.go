package zones

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// defaultMemoryTier is the kernel's tier of DRAM (include/linux/memory-tiers.h). A
// machine without tiers has only DRAM.
const defaultMemoryTier = 4

// values returns the values of [deviceclasses.ZoneAttributes], by name.
func (z Zone) values(machine *numa.Machine, settings Settings) map[resourceapi.QualifiedName]any {
	return map[resourceapi.QualifiedName]any{
		deviceclasses.AttributeKind:           z.kind(),
		deviceclasses.AttributeNUMANode:       z.numaNode(settings),
		deviceclasses.AttributeSocket:         z.socket(machine),
		deviceclasses.AttributeL3:             z.l3(settings),
		deviceclasses.AttributeThreadsPerCore: z.ThreadsPerCore(machine),
		deviceclasses.AttributeCoreType:       z.coreType(machine),
		deviceclasses.AttributeExclusivity:    settings.Exclusivity,
		deviceclasses.AttributeMemoryTier:     z.memoryTier(machine),
		deviceclasses.AttributeNearest:        z.nearest(machine, settings),
		deviceclasses.AttributeMadeUp:         madeUp(settings),
	}
}

// madeUp is true or missing.
func madeUp(settings Settings) *bool {
	if !settings.MadeUp {
		return nil
	}
	return &settings.MadeUp
}

func (z Zone) kind() string {
	if z.Isolated {
		return deviceclasses.KindIsolated
	}
	return deviceclasses.KindZone
}

// numaNode returns the NUMA node, or the list of several of them. One node is never a list, which
// no selector of a number matches.
func (z Zone) numaNode(settings Settings) any {
	switch {
	case len(z.Nodes) == 1:
		return z.Nodes[0]
	case !settings.NUMANodeLists:
		return nil
	}
	ids := make([]int64, len(z.Nodes))
	for i, id := range z.Nodes {
		ids[i] = int64(id)
	}
	return ids
}

// socket returns the socket of all NUMA nodes of the zone that have CPUs, or of the CPUs
// nearest to memory without CPUs. A zone over several sockets has no socket.
func (z Zone) socket(machine *numa.Machine) (socket *int) {
	nodes := z.Nodes
	if z.isMemory(machine) {
		nodes = nearestNodes(machine, nodes)
	}
	for _, id := range nodes {
		node, _ := machine.Zone(id)
		switch {
		case node.CPUs.IsEmpty():
		case len(node.Sockets) != 1 || socket != nil && node.Sockets[0] != *socket:
			return nil
		default:
			socket = &node.Sockets[0]
		}
	}
	return socket
}

// isMemory reports whether the zone is memory without CPUs, such as CXL or HBM.
func (z Zone) isMemory(machine *numa.Machine) bool {
	return !slices.ContainsFunc(z.Nodes, func(id int) bool {
		node, _ := machine.Zone(id)
		return !node.CPUs.IsEmpty() || node.Kind == numa.GPUZone || node.Kind == numa.InitiatorZone || node.Kind == numa.EmptyZone
	})
}

// nearest returns the NUMA node with CPUs that is nearest to the zone, on machines with memory
// without CPUs. On other machines, numaNode says the same.
func (z Zone) nearest(machine *numa.Machine, settings Settings) *int {
	if !settings.memoryZones || len(z.Nodes) > 1 {
		return nil
	}
	if !z.isMemory(machine) {
		return &z.Nodes[0]
	}
	if nodes := nearestNodes(machine, z.Nodes); len(nodes) == 1 {
		return &nodes[0]
	}
	return nil
}

// nearestNodes returns the NUMA nodes with CPUs that are nearest to those without: the one
// whose CPUs the kernel lists for them, too (numa=fake=), or those at the least distance.
func nearestNodes(machine *numa.Machine, nodes []int) (nearest []int) {
	least := 0
	for _, id := range nodes {
		node, _ := machine.Zone(id)
		if node.CPUsIn != nil {
			return []int{*node.CPUsIn}
		}
		for _, distance := range node.Distances {
			if other, online := machine.Zone(distance.Zone); !online || other.CPUs.IsEmpty() {
				continue
			}
			if nearest == nil || distance.Value < least {
				nearest, least = nil, distance.Value
			}
			if distance.Value == least {
				nearest = append(nearest, distance.Zone)
			}
		}
	}
	return nearest
}

func (z Zone) l3(settings Settings) *int {
	if cache, lies := settings.L3[z.Device]; lies && z.L3 == nil {
		return &cache
	}
	return z.L3
}

// coreType returns the core type of all cores of the zone; mixed if they have several
// types.
func (z Zone) coreType(machine *numa.Machine) string {
	if z.CoreType != "" {
		return string(z.CoreType)
	}
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

// memoryTier returns the tier of the slowest NUMA node of the zone.
func (z Zone) memoryTier(machine *numa.Machine) int {
	tier := 0
	for _, id := range z.Nodes {
		node, _ := machine.Zone(id)
		tier = max(tier, ptr.Deref(node.MemoryTier, defaultMemoryTier))
	}
	return tier
}
