package caches

import (
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Devices returns the pools as devices, in their order, without those that claims cannot
// have. The warnings name these, and say why. Lost is what [Node.Lost] returns for the
// claims of the node.
func (n *Node) Devices(lost map[int]int) (devices []resourceapi.Device, warnings []string) {
	if n.restore {
		return nil, []string{"cache.restore is set: no caches are published, and everything is given back as soon as no claim has ways"}
	}
	pools := n.withdrawn(lost)
	for i := range pools {
		pool := &pools[i]
		capacity, err := pool.capacity(n.Bandwidth)
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("%s is not published: %v", pool.Device, err))
			continue
		}
		devices = append(devices, resourceapi.Device{
			Name: pool.Device, Attributes: deviceclasses.DeviceAttributes(deviceclasses.CacheAttributes(), pool.values()), Capacity: capacity, AllowMultipleAllocations: ptr.To(true),
		})
	}
	return devices, warnings
}

// values returns the values of [deviceclasses.CacheAttributes], by name.
func (p *Pool) values() map[resourceapi.QualifiedName]any {
	return map[resourceapi.QualifiedName]any{
		deviceclasses.AttributeKind:           deviceclasses.KindCache,
		deviceclasses.AttributeNUMANode:       p.Node,
		deviceclasses.AttributeL3:             p.Cache,
		deviceclasses.AttributePool:           p.Name,
		deviceclasses.AttributeDefaultMaxWays: p.grownWays(),
	}
}

// grownWays returns up to how many ways a claim grows that names no number; nil if claims of
// the pool do not grow.
func (p *Pool) grownWays() *int {
	if !p.Area.Growing {
		return nil
	}
	return &p.amounts.maxWays
}

// capacity returns the capacities of the pool. A request that does not name one of them
// takes its default.
func (p *Pool) capacity(b *Bandwidth) (map[resourceapi.QualifiedName]resourceapi.DeviceCapacity, error) {
	if p.Name == ways.Shared {
		return map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{deviceclasses.CapacityMembers: values(p.Members, 1, 1)}, nil
	}
	if p.Classes < 1 {
		return nil, errors.New("no class is left: groups of other tools and of mixed claims have them")
	}
	ofWays, err := p.ways()
	if err != nil {
		return nil, err
	}
	capacity := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		deviceclasses.CapacityWays:    ofWays,
		deviceclasses.CapacityClasses: values(p.Classes, 1, 1),
	}
	if b != nil {
		// As many times the largest limit as there can be claims: limits are not summed.
		capacity[b.Capacity] = steps(p.Classes*b.Max, p.amounts.bandwidth, b.Min, b.Step, b.Max)
	}
	return capacity, nil
}

// ways returns the capacity of the ways that claims can have. The default may be more
// than there are: then only claims that ask for fewer ways fit.
func (p *Pool) ways() (resourceapi.DeviceCapacity, error) {
	a, left := p.amounts, p.Area.Usable.Ways()
	if a.valid == nil && a.least < left {
		return steps(left, a.ways, a.least, 1, 0), nil
	}
	valid := a.valid
	if valid == nil {
		valid = []int{a.least}
	}
	valid = slices.DeleteFunc(slices.Clone(valid), func(ways int) bool { return ways > left })
	if !slices.Contains(valid, a.ways) { // the API demands it
		return resourceapi.DeviceCapacity{}, fmt.Errorf("%d ways are left, and a claim that asks for no number needs %d", left, a.ways)
	}
	return values(left, a.ways, valid...), nil
}

// values returns a capacity of which a claim can have certain amounts.
func values(value, usual int, valid ...int) resourceapi.DeviceCapacity {
	policy := &resourceapi.CapacityRequestPolicy{Default: quantity(usual)}
	for _, amount := range valid {
		policy.ValidValues = append(policy.ValidValues, *quantity(amount))
	}
	return resourceapi.DeviceCapacity{Value: *quantity(value), RequestPolicy: policy}
}

// steps returns a capacity of which a claim can have whole steps from least on, up to
// most, or up to the value if most is 0. The API refuses a range whose second step is
// more than the value.
func steps(value, usual, least, step, most int) resourceapi.DeviceCapacity {
	if least+step > value {
		return values(value, usual, usual)
	}
	valid := &resourceapi.CapacityRequestPolicyRange{Min: quantity(least), Step: quantity(step)}
	if most != 0 {
		valid.Max = quantity(most)
	}
	return resourceapi.DeviceCapacity{
		Value:         *quantity(value),
		RequestPolicy: &resourceapi.CapacityRequestPolicy{Default: quantity(usual), ValidRange: valid},
	}
}

func quantity(amount int) *resource.Quantity {
	return resource.NewQuantity(int64(amount), resource.DecimalSI)
}
