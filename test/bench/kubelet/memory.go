package kubelet

import (
	"context"

	"github.com/go-logr/logr"
	cadvisor "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Memory says what of a NUMA node no new pod gets, in bytes and without hugepages.
type Memory struct {
	Reserved uint64 // reservedMemory of the kubelet; all NUMA nodes together need some
	Held     uint64 // by pods that have memory of this NUMA node only
}

// memory is the memory manager as the Topology Manager sees it.
type memory struct {
	policy memorymanager.Policy
	state  state.State
}

func newMemory(logger logr.Logger, m numa.Machine, affinity topologymanager.Store, amounts map[int]Memory) (*memory, error) {
	reserved := map[int]map[corev1.ResourceName]uint64{}
	for id, amount := range amounts {
		reserved[id] = map[corev1.ResourceName]uint64{corev1.ResourceMemory: amount.Reserved}
	}
	policy, err := memorymanager.NewPolicyStatic(logger, &cadvisor.MachineInfo{Topology: nodesOf(m)}, reserved, affinity)
	if err != nil {
		return nil, err
	}
	manager := &memory{policy, state.NewMemoryState(logger)}
	if err := policy.Start(logger, manager.state); err != nil {
		return nil, err
	}
	nodes := manager.state.GetMachineState()
	for id, amount := range amounts {
		if table := nodes[id].MemoryMap[corev1.ResourceMemory]; amount.Held > 0 {
			table.Reserved, table.Free = amount.Held, table.Free-amount.Held
			nodes[id].NumberOfAssignments = 1
		}
	}
	manager.state.SetMachineState(nodes)
	return manager, nil
}

func (m *memory) nodesOf(uid, container string) (nodes cpuset.Set) {
	for _, block := range m.state.GetMemoryBlocks(uid, container) {
		nodes = nodes.Union(cpuset.New(block.NUMAAffinity...))
	}
	return nodes
}

func (m *memory) GetTopologyHints(logger logr.Logger, pod *corev1.Pod, c *corev1.Container, operation lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return m.policy.GetTopologyHints(logger, m.state, pod, c, operation)
}

func (m *memory) GetPodTopologyHints(logger logr.Logger, pod *corev1.Pod, operation lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return m.policy.GetPodTopologyHints(logger, m.state, pod, operation)
}

func (m *memory) AllocatePod(logger logr.Logger, pod *corev1.Pod, operation lifecycle.Operation) error {
	return m.policy.AllocatePod(logger, m.state, pod, operation)
}

func (m *memory) Allocate(ctx context.Context, pod *corev1.Pod, c *corev1.Container, operation lifecycle.Operation) error {
	return m.policy.Allocate(ctx, m.state, pod, c, operation)
}

// nodesOf returns the NUMA nodes with CPUs as cadvisor describes them.
func nodesOf(m numa.Machine) (list []cadvisor.Node) {
	for i := range m.Zones {
		zone := &m.Zones[i]
		if zone.CPUs.IsEmpty() {
			continue
		}
		node := cadvisor.Node{Id: zone.ID}
		if zone.MemoryBytes != nil {
			node.Memory = *zone.MemoryBytes
		}
		for _, pool := range zone.Hugepages {
			node.HugePages = append(node.HugePages, cadvisor.HugePagesInfo{PageSize: pool.PageBytes >> 10, NumPages: pool.TotalPages})
		}
		list = append(list, node)
	}
	return list
}
