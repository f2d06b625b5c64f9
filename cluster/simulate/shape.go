package simulate

import (
	"encoding/json"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
)

// shape is what nodes have in common whose devices differ in nothing but the
// names of node and pool. For a harmless demand, the allocator's yes or no
// depends on the node by nothing else, as long as nothing is held there:
// selectors see neither name, and of several pools of a driver there is only one.
// Nor has the reason for a no the name of either in it.
type shape struct {
	answers map[int]bool   // by number of demand
	reasons map[int]string // by number of demand
}

// shapes are known by their devices as text.
type shapes map[string]*shape

// of is the node's shape; nil if it has none because it shares devices with
// others, or its pools are not as they should be.
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
		return nil // it is only a short cut
	}
	if s[string(text)] == nil {
		s[string(text)] = &shape{make(map[int]bool), make(map[int]string)}
	}
	return s[string(text)]
}

// knows says what was answered for the demand where nothing was held.
func (s *shape) knows(d *demand, version int) (can, known bool) {
	if s == nil || version != 0 || !d.harmless {
		return false, false
	}
	can, known = s.answers[d.number]
	return can, known
}

// learn keeps an answer; knows gives only those for harmless demands.
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
