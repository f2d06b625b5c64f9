// Package kubelet runs the CPU manager and the memory manager of the kubelet, with their
// static policies, and the Topology Manager on machines of package numa. All are Kubernetes'
// own code. The package only translates: it decides nothing but which devices a container
// gets, and knows nothing of this driver.
package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	kubecpuset "k8s.io/utils/cpuset"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// container is the name of the only container of each pod.
const container = "c"

// Config is how the kubelet is configured.
type Config struct {
	Options  map[string]string             // of the static policy
	Reserved cpuset.Set                    // CPUs that no container gets
	Held     map[string]cpuset.Set         // CPUs that pods have already, by UID
	StateDir string                        // of the checkpoint; "" keeps the state in memory only
	Policy   string                        // of the Topology Manager; "" if there is none, see Node.Hint
	Scope    string                        // of the Topology Manager; "" means container
	Memory   map[int]Memory                // by NUMA node; nil if there is no memory manager
	Devices  map[corev1.ResourceName][]int // for each device its NUMA node; only with a Policy
}

// Node is the managers of one node. One goroutine at a time may use it.
type Node struct {
	policy  cpumanager.Policy
	state   state.State
	memory  *memory                 // nil if there is none
	devices *devices                // nil if there are none
	admit   topologymanager.Manager // nil unless a policy of the Topology Manager admits pods
	hint    *given                  // nil if a policy gives the hints
	logger  logr.Logger             // drops what the kubelet would log
}

// New starts the managers on the machine.
func New(m numa.Machine, c Config) (*Node, error) {
	n := &Node{logger: logr.Discard()}
	var affinity topologymanager.Store
	if c.Policy != "" {
		manager, err := topologymanager.NewManager(n.logger, nodesOf(m), c.Policy, cmp.Or(c.Scope, topologymanager.ContainerTopologyScope), nil)
		if err != nil {
			return nil, err
		}
		n.admit, affinity = manager, manager
		if err := n.addProviders(m, c); err != nil {
			return nil, err
		}
	} else {
		n.hint = &given{Store: topologymanager.NewFakeManagerWithPolicy(n.logger, topologymanager.NewNonePolicy())}
		affinity = n.hint
	}
	var err error
	n.policy, err = cpumanager.NewStaticPolicy(n.logger, topologyOf(m), c.Reserved.Size(), toKube(c.Reserved), affinity, c.Options)
	if err != nil {
		return nil, err
	}
	n.state = state.NewMemoryState(n.logger)
	if c.StateDir != "" {
		n.state, err = state.NewCheckpointState(n.logger, c.StateDir, "cpu_manager_state", n.policy.Name(), containermap.NewContainerMap())
		if err != nil {
			return nil, err
		}
	}
	if len(c.Held) > 0 {
		free, held := m.Online, state.ContainerCPUAssignments{}
		if c.Options[cpumanager.StrictCPUReservationOption] == "true" {
			free = free.Difference(c.Reserved)
		}
		for uid, cpus := range c.Held {
			free = free.Difference(cpus)
			held[uid] = map[string]kubecpuset.CPUSet{container: toKube(cpus)}
		}
		n.state.SetDefaultCPUSet(toKube(free))
		n.state.SetCPUAssignments(held)
	}
	return n, n.policy.Start(n.logger, n.state)
}

// Pod returns a pod that gets CPUs of its own.
func Pod(uid string, cpus int) *corev1.Pod {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(cpus), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("1Gi"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "default", UID: types.UID(uid)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: container, Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
		}}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSGuaranteed}, // as the API server stores it
	}
}

// Hint has the next pods get CPUs of this NUMA node if it has enough, as the Topology
// Manager would decide. Without a hint they get any CPUs.
func (n *Node) Hint(zone int) error {
	mask, err := bitmask.NewBitMask(zone)
	if err != nil {
		return err
	}
	n.hint.hint = topologymanager.TopologyHint{NUMANodeAffinity: mask, Preferred: true}
	return nil
}

// Allocate gives the pod its CPUs.
func (n *Node) Allocate(pod *corev1.Pod) error {
	if n.admit == nil {
		return n.policy.Allocate(n.logger, n.state, pod, &pod.Spec.Containers[0], lifecycle.AddOperation)
	}
	result := n.admit.Admit(klog.NewContext(context.Background(), n.logger), &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
	if !result.Admit {
		return fmt.Errorf("%s: %s", result.Reason, result.Message)
	}
	return nil
}

// addProviders adds the managers in the order in which the kubelet does.
func (n *Node) addProviders(m numa.Machine, c Config) error {
	if c.Devices != nil {
		n.devices = newDevices(n.admit, c.Devices)
		n.admit.AddHintProvider(n.logger, n.devices)
	}
	n.admit.AddHintProvider(n.logger, provider{n})
	if c.Memory == nil {
		return nil
	}
	var err error
	if n.memory, err = newMemory(n.logger, m, n.admit, c.Memory); err != nil {
		return err
	}
	n.admit.AddHintProvider(n.logger, n.memory)
	return nil
}

// CPUs returns what the pod has.
func (n *Node) CPUs(uid string) (cpus cpuset.Set, err error) {
	if cpus = n.CPUsOf(uid, container); cpus.IsEmpty() {
		return cpus, errors.New("the pod has no cpus of its own")
	}
	return cpus, nil
}

// CPUsOf returns the CPUs that a container has to itself.
func (n *Node) CPUsOf(uid, container string) cpuset.Set {
	set, _ := n.state.GetCPUSet(uid, container)
	return cpuset.New(set.UnsortedList()...)
}

// MemsOf returns the NUMA nodes from which a container gets memory; empty means any.
func (n *Node) MemsOf(uid, container string) cpuset.Set {
	if n.memory == nil {
		return cpuset.Set{}
	}
	return n.memory.nodesOf(uid, container)
}

// DevicesOf returns the NUMA nodes of the devices of a container.
func (n *Node) DevicesOf(container string) cpuset.Set {
	if n.devices == nil {
		return cpuset.Set{}
	}
	return n.devices.used[container]
}

// Release takes the CPUs of the pod back.
func (n *Node) Release(uid string) error {
	return n.policy.RemoveContainer(n.logger, n.state, uid, container)
}

// given is a Topology Manager that gives one hint.
type given struct {
	topologymanager.Store
	hint topologymanager.TopologyHint
}

func (g *given) GetAffinity(logr.Logger, string, string) topologymanager.TopologyHint { return g.hint }

// provider is the CPU manager as the Topology Manager sees it. The kubelet has the same
// few lines between the two.
type provider struct{ node *Node }

func (p provider) GetTopologyHints(logger logr.Logger, pod *corev1.Pod, c *corev1.Container, operation lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return p.node.policy.GetTopologyHints(logger, p.node.state, pod, c, operation)
}

func (p provider) GetPodTopologyHints(logger logr.Logger, pod *corev1.Pod, operation lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	return p.node.policy.GetPodTopologyHints(logger, p.node.state, pod, operation)
}

func (p provider) AllocatePod(logger logr.Logger, pod *corev1.Pod, operation lifecycle.Operation) error {
	return p.node.policy.AllocatePod(logger, p.node.state, pod, operation)
}

func (p provider) Allocate(_ context.Context, pod *corev1.Pod, c *corev1.Container, operation lifecycle.Operation) error {
	return p.node.policy.Allocate(p.node.logger, p.node.state, pod, c, operation)
}

// topologyOf is the machine as the kubelet describes it.
func topologyOf(m numa.Machine) *topology.CPUTopology {
	details := topology.CPUDetails{}
	for _, core := range m.Cores {
		first, socket := 0, 0
		for first = range core.CPUs.All() {
			break
		}
		if core.Socket != nil {
			socket = *core.Socket
		}
		l3 := socket // as the kubelet does without an L3
		if core.L3 != nil {
			l3 = *core.L3
		}
		for cpu := range core.CPUs.All() {
			details[cpu] = topology.CPUInfo{NUMANodeID: core.Zone, SocketID: socket, CoreID: first, UncoreCacheID: l3}
		}
	}
	return &topology.CPUTopology{
		NumCPUs: len(details), NumCores: len(m.Cores), NumUncoreCache: details.UncoreCaches().Size(),
		NumSockets: details.Sockets().Size(), NumNUMANodes: details.NUMANodes().Size(), CPUDetails: details,
	}
}

func toKube(set cpuset.Set) kubecpuset.CPUSet {
	var ids []int
	for cpu := range set.All() {
		ids = append(ids, cpu)
	}
	return kubecpuset.New(ids...)
}
