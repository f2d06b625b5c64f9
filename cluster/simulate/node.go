package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// node is a Node with its books.
type node struct {
	*corev1.Node
	inventory.Local
	allocatable requests.Amounts
	taken       requests.Amounts // by pods that have this node
	pods        int64            // that have this node
	shape       *shape           // nil if no other node can be like it

	// What follows is of one version of what is held of the pools.
	version   int
	state     structured.AllocatedState
	allocator structured.Allocator
	answers   map[int]bool   // by number of demand: whether it can be allocated
	reasons   map[int]string // by number of demand: why it cannot
	late      map[int]bool   // by number of demand: the search takes too long
}

func newNode(object *corev1.Node, inv *inventory.Inventory, known shapes) *node {
	n := &node{
		Node:        object,
		Local:       inv.For(object),
		allocatable: requests.Count(object.Status.Allocatable),
		taken:       make(requests.Amounts),
		version:     -1,
	}
	n.shape = known.of(n, inv)
	return n
}

func (n *node) take(asked requests.Amounts) {
	n.pods++
	for name, amount := range asked {
		n.taken[name] += amount
	}
}

// refresh brings what depends on the held devices up to date.
func (n *node) refresh(ctx context.Context, c *Cluster) error {
	version := c.held.Version(n.Pools)
	if version == n.version {
		return nil
	}
	state := c.held.State(n.Pools)
	allocator, err := structured.NewAllocator(ctx, c.features, state, c.classes, n.Slices, c.celCache)
	if err != nil {
		return err
	}
	n.version, n.state, n.allocator = version, state, allocator
	n.answers, n.reasons, n.late = make(map[int]bool), make(map[int]string), make(map[int]bool)
	return nil
}

// give is the reverse of take.
func (n *node) give(asked requests.Amounts) {
	n.pods--
	for name, amount := range asked {
		n.taken[name] -= amount
	}
}
