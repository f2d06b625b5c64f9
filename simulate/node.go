package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// node is a Node with its books.
type node struct {
	*corev1.Node
	allocatable amounts
	taken       amounts // by pods that have this node
	pods        int64   // that have this node
	pools       []*pool
	slices      []*resourceapi.ResourceSlice // of the pools
	devices     []device                     // that are for this node
	shape       *shape                       // nil if no other node can be like it

	// What follows is of one version of what is held of the pools.
	version   int
	state     structured.AllocatedState
	allocator structured.Allocator
	answers   map[int]bool   // by number of demand: whether it can be allocated
	reasons   map[int]string // by number of demand: why it cannot
	late      map[int]bool   // by number of demand: the search takes too long
}

func newNode(object *corev1.Node, inv *inventory, known shapes) *node {
	n := &node{
		Node:        object,
		allocatable: amountsOf(object.Status.Allocatable),
		taken:       make(amounts),
		pools:       inv.poolsOf(object.Name),
		version:     -1,
	}
	for _, p := range n.pools {
		n.slices = append(n.slices, p.slices...)
		n.devices = append(n.devices, p.devicesFor(object, inv.order)...)
	}
	n.shape = known.of(n, inv)
	return n
}

func (n *node) take(asked amounts) {
	n.pods++
	for name, amount := range asked {
		n.taken[name] += amount
	}
}

// refresh brings what depends on the held devices up to date.
func (n *node) refresh(ctx context.Context, c *Cluster) error {
	version := c.held.version(n.pools)
	if version == n.version {
		return nil
	}
	state := c.held.state(n.pools)
	allocator, err := structured.NewAllocator(ctx, c.features, state, c.classes, n.slices, c.celCache)
	if err != nil {
		return err
	}
	n.version, n.state, n.allocator = version, state, allocator
	n.answers, n.reasons, n.late = make(map[int]bool), make(map[int]string), make(map[int]bool)
	return nil
}
