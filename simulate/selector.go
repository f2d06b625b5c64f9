package simulate

import (
	"context"
	"errors"
	"math"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
)

// selection is what an expression says of devices.
type selection struct {
	compiled cel.CompilationResult
	known    map[int]bool // by order of the device
}

// selects evaluates a selector as the allocator does. What it says of a device
// never changes, so it is asked once.
func (c *Cluster) selects(expression string, d *device) (bool, error) {
	s := c.selected[expression]
	if s == nil {
		s = &selection{c.celCache.GetOrCompile(expression), make(map[int]bool)}
		c.selected[expression] = s
	}
	if s.compiled.Error != nil {
		return false, s.compiled.Error
	}
	if matches, known := s.known[d.order]; known {
		return matches, nil
	}
	matches, _, err := s.compiled.DeviceMatches(context.Background(), cel.Device{
		Driver:                   d.slice.Spec.Driver,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes:               d.Attributes,
		Capacity:                 d.Capacity,
	})
	if err != nil {
		return false, cel.EnhanceRuntimeError(err)
	}
	s.known[d.order] = matches
	return matches, nil
}

// selectsAll says whether the device passes all selectors.
func (c *Cluster) selectsAll(selectors []resourceapi.DeviceSelector, d *device) (bool, error) {
	for _, selector := range selectors {
		if matches, err := c.selects(selector.CEL.Expression, d); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

// isHarmless says whether no node's devices can make the allocator return an
// error for the demand. It is true only for what common claims are made of:
// exact counts, selectors that say yes or no of every device, amounts far from
// what does not fit into 64 bits.
func (c *Cluster) isHarmless(d *demand) bool {
	if !c.harmlessDevices {
		return false
	}
	for _, claim := range d.toAllocate() {
		devices := int64(0)
		for _, request := range claim.Spec.Devices.Requests {
			most := int64(0)
			for _, a := range alternatives(request) {
				if !c.isHarmlessRequest(a) {
					return false
				}
				most = max(most, a.count)
			}
			devices += most
		}
		if devices > resourceapi.AllocationResultsMaxSize {
			return false
		}
		for _, constraint := range claim.Spec.Devices.Constraints {
			if constraint.MatchAttribute == nil && constraint.DistinctAttribute == nil {
				return false
			}
		}
	}
	return !d.extended
}

// largestAmount leaves room for rounding and for thousandths in 64 bits.
const largestAmount = math.MaxInt64 / 1_000_000

func (c *Cluster) isHarmlessRequest(a alternative) bool {
	if a.mode != resourceapi.DeviceAllocationModeExactCount || a.admin || a.derived || a.count < 1 || a.count > resourceapi.AllocationResultsMaxSize {
		return false
	}
	if a.capacity != nil {
		if !c.features.ConsumableCapacity {
			return false
		}
		for _, amount := range a.capacity.Requests {
			if amount.Sign() < 0 || amount.CmpInt64(largestAmount) > 0 {
				return false
			}
		}
	}
	return c.isHarmlessSelection(a)
}

// isHarmlessSelection says whether class and request select or reject every
// device of the cluster. Which ones, only their selectors decide.
func (c *Cluster) isHarmlessSelection(a alternative) (harmless bool) {
	key := a.class
	for _, selector := range a.selectors {
		if selector.CEL == nil {
			return false
		}
		key += "\x00" + selector.CEL.Expression
	}
	if harmless, known := c.harmless[key]; known {
		return harmless
	}
	defer func() { c.harmless[key] = harmless }()
	for _, n := range c.nodes {
		for i := range n.devices {
			if _, err := c.passes(a, &n.devices[i]); err != nil {
				return false
			}
		}
	}
	return true
}

// errNoExpression is about a selector of a kind that this version does not know.
var errNoExpression = errors.New("selector without a CEL expression")

// passes says whether the device passes the selectors of class and request.
func (c *Cluster) passes(a alternative, d *device) (bool, error) {
	for _, selectors := range [][]resourceapi.DeviceSelector{c.classes[a.class].Spec.Selectors, a.selectors} {
		for _, selector := range selectors {
			if selector.CEL == nil {
				return false, errNoExpression
			}
		}
		if matches, err := c.selectsAll(selectors, d); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

// isHarmlessDevice has amounts and steps that cannot be too large or negative.
func isHarmlessDevice(d *resourceapi.Device) bool {
	for _, capacity := range d.Capacity {
		amounts := []*resource.Quantity{&capacity.Value}
		if policy := capacity.RequestPolicy; policy != nil {
			amounts = append(amounts, policy.Default)
			for i := range policy.ValidValues {
				amounts = append(amounts, &policy.ValidValues[i])
			}
			if r := policy.ValidRange; r != nil {
				amounts = append(amounts, r.Min, r.Max, r.Step)
			}
		}
		for _, amount := range amounts {
			if amount != nil && (amount.Sign() < 0 || amount.CmpInt64(largestAmount) > 0) {
				return false
			}
		}
	}
	return true
}
