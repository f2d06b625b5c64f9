package simulate

import (
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/capacities"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// isHarmless reports whether the allocator cannot fail for the demand on any node. It is
// true only for the usual contents of claims: exact counts, selectors that answer yes or
// no for every device, and amounts that cannot overflow 64 bits.
func (c *Cluster) isHarmless(d *demand) bool {
	if !c.harmlessDevices || len(c.hidden) > 0 {
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
		if c.minor >= 38 && capacities.Doubtful(a.Capacity) {
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

// isHarmlessSelection reports whether the class and the request select or reject every
// device of the cluster without an error. This depends only on their selectors.
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
	began := time.Now()
	defer func() { c.harmless[key] = harmless; c.spent(began) }()
	for _, n := range c.nodes {
		for i := range n.Devices {
			if time.Since(began) > c.atMost(time.Second) {
				return false // such selectors can keep the allocator busy until its time is up
			}
			if _, err := c.passes(a, &n.Devices[i]); err != nil {
				return false
			}
		}
	}
	return true
}

// endless returns an error if the allocator may not end, because of a selector of the claims.
func (c *Cluster) endless(claims []*resourceapi.ResourceClaim) error {
	for _, claim := range claims {
		for _, request := range claim.Spec.Devices.Requests {
			for _, a := range requests.Alternatives(request) {
				var ofClass []resourceapi.DeviceSelector
				if class := c.classes[a.Class]; class != nil {
					ofClass = class.Spec.Selectors
				}
				if err := c.selectors.Endless(slices.Concat(ofClass, a.Selectors)); err != nil {
					return fmt.Errorf("claim %s, request %s: %w", claim.Name, a.Name, err)
				}
			}
		}
	}
	return nil
}

// passes reports whether the device passes the selectors of the class and the request.
func (c *Cluster) passes(a requests.Alternative, d *inventory.Device) (bool, error) {
	if matches, err := c.selectors.All(c.classes[a.Class].Spec.Selectors, d); err != nil || !matches {
		return false, err
	}
	return c.selectors.All(a.Selectors, d)
}

// isHarmlessDevice reports whether the amounts and steps of the device are neither
// negative nor too large.
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
