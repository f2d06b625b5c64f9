package simulate

import (
	"encoding/json"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
)

// shape keeps answers that are the same for several nodes: nodes whose devices differ only
// in the names of the node and the pool. As long as nothing is held on such a node, the
// allocator's answer for a harmless demand is the same on all of them. Selectors see
// neither name, and there is only one pool per driver. The reason for a no contains
// neither name either.
type shape struct {
	answers map[int]bool   // by number of demand
	reasons map[int]string // by number of demand
}

// shapes are found by the devices of their nodes as text.
type shapes map[string]*shape

// of is the node's shape. It is nil if the node shares devices with other nodes, or its
// pools are irregular.
func (s shapes) of(n *node, inv *inventory.Inventory) *shape {
	if inv.Shares() {
		return nil
	}
	var specs []resourceapi.ResourceSliceSpec
	drivers := make(map[string]bool)
	for _, p := range n.Pools {
		if drivers[p.ID.Driver] {
			return nil
		}
		drivers[p.ID.Driver] = true
		for _, slice := range p.Slices {
			if ptr.Deref(slice.Spec.NodeName, "") != n.Name {
				return nil
			}
			spec := slice.Spec
			spec.NodeName, spec.Pool.Name = nil, ""
			specs = append(specs, spec)
		}
	}
	text, err := json.Marshal(specs)
	if err != nil || slices.ContainsFunc(n.Devices, func(d inventory.Device) bool { return d.Incomplete != "" }) {
		return nil // without a shape, every node is asked
	}
	if s[string(text)] == nil {
		s[string(text)] = &shape{make(map[int]bool), make(map[int]string)}
	}
	return s[string(text)]
}

// recall is the answer for the demand on a node on which nothing is held.
func (s *shape) recall(d *demand, version int) (can, known bool) {
	if s == nil || version != 0 || !d.harmless {
		return false, false
	}
	can, known = s.answers[d.number]
	return can, known
}

// learn keeps an answer. recall returns it only for harmless demands.
func (s *shape) learn(d *demand, version int, can bool) {
	if s != nil && version == 0 {
		s.answers[d.number] = can
	}
}

// reasonsOf is where reasons for the demand are kept.
func (n *node) reasonsOf(d *demand) map[int]string {
	if n.shape != nil && n.version == 0 && d.harmless {
		return n.shape.reasons
	}
	return n.reasons
}
