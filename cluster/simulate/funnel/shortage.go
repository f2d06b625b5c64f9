package funnel

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Feature gates without which devices are ignored that have counters or binding conditions.
const (
	partitionableGate = "DRAPartitionableDevices"
	bindingGate       = "DRADeviceBindingConditions"
)

// shortage is a capacity or counter that is not sufficient on a device.
type shortage struct {
	device  *inventory.Device
	name    string
	missing bool   // the device does not have the capacity
	counter bool   // a counter that devices of the pool share
	gate    string // the feature gate without which the device is ignored
	named   bool   // the request names the capacity; otherwise the device's default is charged
	asked   resource.Quantity
	charged resource.Quantity // asked, rounded by the device's policy
	free    resource.Quantity
	limit   *resource.Quantity // the maximum for one request, if asked exceeds it
	value   resource.Quantity  // of the device
	most    *resource.Quantity // the maximum of the device's policy
	only    *resource.Quantity // the only amount that the device's policy allows
}

// shortages returns the capacities and counters that are not sufficient on the device,
// sorted by name. It mirrors CmpRequestOverCapacity and checkAvailableCounters of the
// allocator.
func (v *View) shortages(a requests.Alternative, d *inventory.Device) (list []shortage) {
	if v.Features.ConsumableCapacity {
		list = v.capacityShortages(a, d)
	}
	if !v.Features.DeviceBindingAndStatus && len(d.BindingConditions) > 0 {
		list = append(list, shortage{device: d, name: bindingGate, gate: bindingGate, counter: true})
	}
	if !v.Features.PartitionableDevices && len(d.ConsumesCounters) > 0 {
		return append(list, shortage{device: d, name: partitionableGate, gate: partitionableGate, counter: true})
	}
	return append(list, v.counterShortages(d)...)
}

func (v *View) capacityShortages(a requests.Alternative, d *inventory.Device) (list []shortage) {
	var requests map[resourceapi.QualifiedName]resource.Quantity
	if a.Capacity != nil {
		requests = a.Capacity.Requests
	}
	for _, name := range sortedNames(requests) {
		if _, has := d.Capacity[name]; !has {
			list = append(list, shortage{device: d, name: string(name), missing: true, asked: requests[name]})
		}
	}
	for _, name := range sortedNames(d.Capacity) {
		capacity := d.Capacity[name]
		s := shortage{device: d, name: string(name), free: capacity.Value.DeepCopy(), value: capacity.Value}
		if policy := capacity.RequestPolicy; policy != nil && policy.ValidRange != nil {
			s.most = policy.ValidRange.Max
		} else if policy != nil && len(policy.ValidValues) == 1 {
			s.only = &policy.ValidValues[0]
		}
		s.asked, s.named = requests[name]
		s.charged, s.limit = charge(s.asked, s.named, capacity, v.Features.FractionalCapacityRange)
		if taken := v.State.Consumed(d.ID, name); taken != nil {
			s.free.Sub(*taken)
		}
		if s.limit != nil || s.charged.Cmp(s.free) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// always reports whether the capacity would not be sufficient if nobody held any of it, or
// the device is ignored anyway.
func (s shortage) always() bool {
	return s.missing || s.limit != nil || s.gate == bindingGate || !s.counter && s.charged.Cmp(s.value) > 0
}

// charge returns what the request takes from the device. If that exceeds the policy's
// maximum, it returns the maximum as the limit.
func charge(asked resource.Quantity, named bool, capacity resourceapi.DeviceCapacity, fractional bool) (charged resource.Quantity, limit *resource.Quantity) {
	policy := capacity.RequestPolicy
	switch {
	case !named && policy != nil && policy.Default != nil:
		return policy.Default.DeepCopy(), nil
	case !named:
		return capacity.Value.DeepCopy(), nil
	case policy == nil:
		return asked, nil
	}
	if r := policy.ValidRange; r != nil && r.Min != nil {
		charged = roundUp(asked, *r, fractional)
		if r.Max != nil && charged.Cmp(*r.Max) > 0 {
			limit = r.Max
		}
		return charged, limit
	}
	for i := range policy.ValidValues {
		if asked.Cmp(policy.ValidValues[i]) <= 0 {
			return policy.ValidValues[i], nil
		}
	}
	if last := len(policy.ValidValues) - 1; last >= 0 {
		limit = &policy.ValidValues[last]
	}
	return asked, limit
}

// roundUp rounds up to min + n·step.
func roundUp(asked resource.Quantity, r resourceapi.CapacityRequestPolicyRange, fractional bool) resource.Quantity {
	if asked.Cmp(*r.Min) < 0 {
		return r.Min.DeepCopy()
	}
	if r.Step == nil {
		return asked
	}
	steps := func(asked, lowest, step int64) int64 {
		return lowest + (asked-lowest+step-1)/max(step, 1)*step
	}
	if fractional && r.Step.CmpInt64(requests.LargestAmount) < 0 && asked.CmpInt64(requests.LargestAmount) < 0 {
		return *resource.NewMilliQuantity(steps(asked.MilliValue(), r.Min.MilliValue(), r.Step.MilliValue()), r.Step.Format)
	}
	return *resource.NewQuantity(steps(asked.Value(), r.Min.Value(), r.Step.Value()), r.Step.Format)
}

// counterShortages returns the counters that have less left than the device consumes. A
// shared device that is in use has already consumed its counters.
func (v *View) counterShortages(d *inventory.Device) (list []shortage) {
	if len(d.ConsumesCounters) == 0 || d.Shared() && v.State.Held(d.ID) {
		return nil
	}
	left := v.countersLeft(d)
	for _, consumed := range d.ConsumesCounters {
		for _, name := range sortedNames(consumed.Counters) {
			id := consumed.CounterSet + "/" + name
			asked, free := consumed.Counters[name].Value, left[id]
			if asked.Cmp(free) > 0 {
				list = append(list, shortage{device: d, name: id, counter: true, asked: asked, charged: asked, free: free})
			}
		}
	}
	return list
}

// countersLeft returns what is left of the counters of the device's pool, by set/counter.
func (v *View) countersLeft(d *inventory.Device) map[string]resource.Quantity {
	left := make(map[string]resource.Quantity)
	for _, slice := range v.Slices {
		if slice.Spec.Pool != d.Slice.Spec.Pool || slice.Spec.Driver != d.Slice.Spec.Driver {
			continue
		}
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				left[set.Name+"/"+name] = counter.Value.DeepCopy()
			}
		}
	}
	for i := range v.Devices {
		other := &v.Devices[i]
		if other.Slice.Spec.Pool != d.Slice.Spec.Pool || other.Slice.Spec.Driver != d.Slice.Spec.Driver || !v.State.Held(other.ID) {
			continue
		}
		for _, consumed := range other.ConsumesCounters {
			for name, counter := range consumed.Counters {
				free := left[consumed.CounterSet+"/"+name]
				free.Sub(counter.Value)
				left[consumed.CounterSet+"/"+name] = free
			}
		}
	}
	return left
}
