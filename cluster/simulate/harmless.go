package simulate

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

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
			for _, a := range requests.Alternatives(request) {
				if !c.isHarmlessRequest(a) {
					return false
				}
				most = max(most, a.Count)
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

func (c *Cluster) isHarmlessRequest(a requests.Alternative) bool {
	if a.Mode != resourceapi.DeviceAllocationModeExactCount || a.Admin || a.Derived || a.Count < 1 || a.Count > resourceapi.AllocationResultsMaxSize {
		return false
	}
	if a.Capacity != nil {
		if !c.features.ConsumableCapacity {
			return false
		}
		for _, amount := range a.Capacity.Requests {
			if amount.Sign() < 0 || amount.CmpInt64(requests.LargestAmount) > 0 {
				return false
			}
		}
	}
	return c.isHarmlessSelection(a)
}

// isHarmlessSelection says whether class and request select or reject every
// device of the cluster. Which ones, only their selectors decide.
func (c *Cluster) isHarmlessSelection(a requests.Alternative) (harmless bool) {
	key := a.Class
	for _, selector := range a.Selectors {
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
		for i := range n.Devices {
			if _, err := c.passes(a, &n.Devices[i]); err != nil {
				return false
			}
		}
	}
	return true
}

// passes says whether the device passes the selectors of class and request.
func (c *Cluster) passes(a requests.Alternative, d *inventory.Device) (bool, error) {
	if matches, err := c.selectors.All(c.classes[a.Class].Spec.Selectors, d); err != nil || !matches {
		return false, err
	}
	return c.selectors.All(a.Selectors, d)
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
			if amount != nil && (amount.Sign() < 0 || amount.CmpInt64(requests.LargestAmount) > 0) {
				return false
			}
		}
	}
	return true
}
