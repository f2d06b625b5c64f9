package simulate

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
)

// poolID names a pool.
type poolID struct{ driver, name string }

// pool is all slices of a pool, also outdated ones.
type pool struct {
	id     poolID
	slices []*resourceapi.ResourceSlice
}

// inventory is all slices, by who can see them.
type inventory struct {
	pools  map[poolID]*pool
	local  map[string][]*pool // by node that a slice of the pool names
	shared []*pool            // with a slice that names no node
	order  map[*resourceapi.Device]int
}

// newInventory refuses what would abort the scheduler for every pod.
func newInventory(list []*resourceapi.ResourceSlice) (*inventory, error) {
	inv := &inventory{
		pools: make(map[poolID]*pool),
		local: make(map[string][]*pool),
		order: make(map[*resourceapi.Device]int),
	}
	type place struct {
		*pool
		node string
	}
	seen := make(map[place]bool)
	for _, slice := range list {
		if err := checkSelectors(slice); err != nil {
			return nil, fmt.Errorf("ResourceSlice %s: %w", slice.Name, err)
		}
		id := poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if inv.pools[id] == nil {
			inv.pools[id] = &pool{id: id}
		}
		p := inv.pools[id]
		p.slices = append(p.slices, slice)
		for i := range slice.Spec.Devices {
			inv.order[&slice.Spec.Devices[i]] = len(inv.order)
		}
		name := ptr.Deref(slice.Spec.NodeName, "")
		if seen[place{p, name}] {
			continue
		}
		seen[place{p, name}] = true
		if name == "" {
			inv.shared = append(inv.shared, p)
		} else {
			inv.local[name] = append(inv.local[name], p)
		}
	}
	return inv, nil
}

func checkSelectors(slice *resourceapi.ResourceSlice) error {
	if err := checkSelector(slice.Spec.NodeSelector); err != nil {
		return err
	}
	for i := range slice.Spec.Devices {
		if err := checkSelector(slice.Spec.Devices[i].NodeSelector); err != nil {
			return fmt.Errorf("device %s: %w", slice.Spec.Devices[i].Name, err)
		}
	}
	return nil
}

func checkSelector(selector *corev1.NodeSelector) error {
	if selector == nil {
		return nil
	}
	_, err := nodeaffinity.NewNodeSelector(selector)
	return err
}

// poolsOf are the pools of which the node may see a slice. What the allocator
// answers for the node depends on no other pool's slices: it picks the slices
// for the node and, to know whether a pool is complete, looks at all slices of
// their pools (GatherPools).
func (inv *inventory) poolsOf(nodeName string) (list []*pool) {
	seen := make(map[*pool]bool)
	for _, pools := range [][]*pool{inv.local[nodeName], inv.shared} {
		for _, p := range pools {
			if !seen[p] {
				seen[p] = true
				list = append(list, p)
			}
		}
	}
	return list
}

// device is one of those that a node may see.
type device struct {
	*resourceapi.Device
	slice *resourceapi.ResourceSlice
	id    structured.DeviceID
	order int // in the inventory
	// incomplete says which slices of the pool are missing; "" is none.
	incomplete string
}

// devicesFor are the node's devices in the current slices, in their order.
func (p *pool) devicesFor(node *corev1.Node, order map[*resourceapi.Device]int) (list []device) {
	current := p.current()
	incomplete := ""
	if wanted := current[0].Spec.Pool.ResourceSliceCount; wanted != int64(len(current)) {
		incomplete = fmt.Sprintf("pool %s of driver %s has %d slices but says that it has %d", p.id.name, p.id.driver, len(current), wanted)
	}
	for _, slice := range current {
		whole := seenBy(node, ptr.Deref(slice.Spec.NodeName, ""), ptr.Deref(slice.Spec.AllNodes, false), slice.Spec.NodeSelector)
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			alone := ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) &&
				seenBy(node, ptr.Deref(d.NodeName, ""), ptr.Deref(d.AllNodes, false), d.NodeSelector)
			if whole || alone {
				id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, d.Name)
				list = append(list, device{d, slice, id, order[d], incomplete})
			}
		}
	}
	return list
}

// current are the slices of the newest generation, of which there is one or more.
func (p *pool) current() (list []*resourceapi.ResourceSlice) {
	newest := p.slices[0].Spec.Pool.Generation
	for _, slice := range p.slices {
		newest = max(newest, slice.Spec.Pool.Generation)
	}
	for _, slice := range p.slices {
		if slice.Spec.Pool.Generation == newest {
			list = append(list, slice)
		}
	}
	return list
}

// seenBy is the allocator's NodeMatches, for selectors that newInventory checked.
func seenBy(node *corev1.Node, name string, all bool, selector *corev1.NodeSelector) bool {
	switch {
	case name != "":
		return node.Name == name
	case all:
		return true
	case selector != nil:
		compiled, err := nodeaffinity.NewNodeSelector(selector)
		return err == nil && compiled.Match(node)
	}
	return false
}
