// Package inventory evaluates ResourceSlices and ResourceClaims. It says which devices
// exist, which of them a node can see, what claims hold, and which devices a selector
// selects. It decides nothing about pods.
package inventory

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// PoolID identifies a pool.
type PoolID struct{ Driver, Name string }

// Pool is all slices of a pool, including outdated ones.
type Pool struct {
	ID     PoolID
	Slices []*resourceapi.ResourceSlice

	allocatable allocation.Slices // the same, for the allocator
	counters    string            // what is wrong with their counters, or ""
}

// Inventory is all pools, by the nodes that can see them.
type Inventory struct {
	pools  map[PoolID]*Pool
	local  map[string][]*Pool // pools with a slice that names the node
	shared []*Pool            // pools with a slice that names no node
	order  map[*resourceapi.Device]int
}

// New returns the inventory of the slices, and keeps the slices. It refuses slices that
// would make the scheduler fail for every pod.
func New(list []*resourceapi.ResourceSlice, features allocation.Features) (*Inventory, error) {
	inv := &Inventory{
		pools: make(map[PoolID]*Pool),
		local: make(map[string][]*Pool),
		order: make(map[*resourceapi.Device]int),
	}
	type place struct {
		*Pool
		node string
	}
	seen := make(map[place]bool)
	for _, slice := range list {
		if err := checkSelectors(slice); err != nil {
			return nil, fmt.Errorf("ResourceSlice %s: %w", slice.Name, err)
		}
		id := PoolID{slice.Spec.Driver, slice.Spec.Pool.Name}
		if inv.pools[id] == nil {
			inv.pools[id] = &Pool{ID: id}
		}
		p := inv.pools[id]
		p.Slices = append(p.Slices, slice)
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
	for _, p := range inv.pools {
		p.allocatable = allocation.NewSlices(p.Slices)
		if features.PartitionableDevices {
			p.counters = p.invalidCounters()
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

// Shares reports whether several nodes may see a pool. This is so if one of the pool's
// slices names no node.
func (inv *Inventory) Shares() bool { return len(inv.shared) > 0 }

// Each calls f for every device, including devices of outdated slices.
func (inv *Inventory) Each(f func(*resourceapi.Device)) {
	for device := range inv.order {
		f(device)
	}
}

// Local is what one node can see.
type Local struct {
	Pools   []*Pool
	Slices  []*resourceapi.ResourceSlice // of the pools, in their order
	Devices []Device                     // in the order of their slices
	// Allocatable are the slices in the form that the allocator takes.
	Allocatable allocation.Slices
}

// For returns what the node can see. The allocator's answer for the node does not
// depend on other pools. The allocator picks the slices for the node. To find out
// whether their pool is complete, it looks at all slices of that pool (GatherPools).
func (inv *Inventory) For(node *corev1.Node) Local {
	var local Local
	seen := make(map[*Pool]bool)
	for _, pools := range [][]*Pool{inv.local[node.Name], inv.shared} {
		for _, p := range pools {
			if seen[p] {
				continue
			}
			seen[p] = true
			local.Pools = append(local.Pools, p)
			local.Slices = append(local.Slices, p.Slices...)
			local.Allocatable = allocation.Join(local.Allocatable, p.allocatable)
			local.Devices = append(local.Devices, p.devicesFor(node, inv.order)...)
		}
	}
	return local
}
