package simulate

import (
	"encoding/json"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
)

// shape keeps answers that several nodes have in common: nodes whose devices differ
// only in the names of the node and the pool. As long as no claim holds a device of
// such nodes, the allocator gives the same answer for a harmless demand on all of them.
// Selectors do not see these names, and there is only one pool per driver. The reasons
// for a no do not contain these names either.
type shape struct {
	answers map[int]answer // by number of demand
	reasons map[int]string // by number of demand
}

// shapes are the shapes by the devices of their nodes, as text.
type shapes map[string]*shape

// of returns the shape of the node. It returns nil if the node shares devices with
// other nodes, or if its pools are irregular.
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
	if err != nil || slices.ContainsFunc(n.Devices, func(d inventory.Device) bool { return d.Unusable() != "" }) {
		return nil // without a shape, every node is asked
	}
	if s[string(text)] == nil {
		s[string(text)] = &shape{make(map[int]answer), make(map[int]string)}
	}
	return s[string(text)]
}

// recall returns the answer for the demand, if nothing on the node is held.
func (s *shape) recall(d *demand, version int) (a answer, known bool) {
	if s == nil || version != 0 || !d.harmless {
		return answer{}, false
	}
	a, known = s.answers[d.number]
	return a, known
}

// learn keeps an answer. recall returns it only for harmless demands.
func (s *shape) learn(d *demand, version int, a answer) {
	if s != nil && version == 0 {
		s.answers[d.number] = a
	}
}

// reasonsOf returns the map that keeps the reasons for the demand.
func (n *node) reasonsOf(d *demand) map[int]string {
	if n.shape != nil && n.version == 0 && d.harmless {
		return n.shape.reasons
	}
	return n.reasons
}
