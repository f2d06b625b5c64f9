package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/score"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// node is a Node, and what pods take of it.
type node struct {
	*corev1.Node
	inventory.Local
	allocatable requests.Amounts
	taken       requests.Amounts // by the pods on this node
	pods        int64            // number of pods on this node
	scored      *score.Node      // as the scheduler's score plugins see it; it shares taken
	running     int              // number of pods of the snapshot, which are the first of scored.Pods
	placed      []placedPod      // those that this package placed
	nominated   []*corev1.Pod    // without a node, with this one in status.nominatedNodeName
	shape       *shape           // nil if no other node can have the same shape

	// The fields below are valid for one version of the holdings.
	version   int
	state     allocation.State
	allocator allocation.Allocator
	answers   map[int]answer // by number of demand
	reasons   map[int]string // by number of demand: why it cannot be allocated
	late      map[int]error  // by number of demand: the error if the search takes too long
}

// answer says whether a demand can be allocated.
type answer struct {
	can          bool
	alternatives int64 // score.Alternatives of the allocations
}

// placedPod is a pod, and what it takes of its node.
type placedPod struct {
	pod   *corev1.Pod
	takes requests.Amounts
}

func newNode(object *corev1.Node, inv *inventory.Inventory, known shapes) *node {
	n := &node{
		Node:        object,
		Local:       inv.For(object),
		allocatable: requests.Count(object.Status.Allocatable),
		taken:       make(requests.Amounts),
		version:     -1,
	}
	n.scored = score.NewNode(object, n.allocatable, n.taken)
	n.shape = known.of(n, inv)
	return n
}

func (n *node) addPod(asked requests.Amounts) {
	n.pods++
	for name, amount := range asked {
		n.taken[name] += amount
	}
}

// refresh updates the fields that depend on the holdings.
func (n *node) refresh(ctx context.Context, c *Cluster) error {
	version := c.held.Version(n.Pools)
	if version == n.version {
		return nil
	}
	state := c.held.State(n.Pools)
	allocator, err := allocation.NewAllocator(ctx, c.features, state, c.classes, n.Allocatable, c.celCache)
	if err != nil {
		return err
	}
	n.version, n.state, n.allocator = version, state, allocator
	n.answers, n.reasons, n.late = make(map[int]answer), make(map[int]string), make(map[int]error)
	return nil
}

// keptFor returns the pods for which the scheduler keeps room on the node when it looks for a
// node for the pod (addGENominatedPods).
func (n *node) keptFor(pod *corev1.Pod) (list []*corev1.Pod) {
	for _, other := range n.nominated {
		if other != pod && schedulinghelper.PodPriority(other) >= schedulinghelper.PodPriority(pod) {
			list = append(list, other)
		}
	}
	return list
}

// removePod is the reverse of addPod. It does not change scores.
func (n *node) removePod(asked requests.Amounts) {
	n.pods--
	for name, amount := range asked {
		n.taken[name] -= amount
	}
}
