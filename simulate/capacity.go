package simulate

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// shortage is a capacity because of which a device cannot be had.
type shortage struct {
	name    string
	missing bool // the device does not have it at all
	counter bool // it is shared by devices of the pool
	named   bool // by the request; otherwise the device's default is charged
	asked   resource.Quantity
	charged resource.Quantity // asked as the device's policy rounds it
	free    resource.Quantity
	limit   *resource.Quantity // the most that one request may have, if that is exceeded
}

// shortages are what the device lacks, by name. It mirrors
// CmpRequestOverCapacity and checkAvailableCounters of the allocator.
func (c *Cluster) shortages(a alternative, d *device, n *node) (list []shortage) {
	if c.features.ConsumableCapacity {
		list = c.capacityShortages(a, d, n)
	}
	if !c.features.PartitionableDevices && len(d.ConsumesCounters) > 0 {
		return append(list, shortage{name: "counters, whose feature gate " + gatePartitionable + " is off", counter: true})
	}
	return append(list, n.counterShortages(d)...)
}

func (c *Cluster) capacityShortages(a alternative, d *device, n *node) (list []shortage) {
	var requests map[resourceapi.QualifiedName]resource.Quantity
	if a.capacity != nil {
		requests = a.capacity.Requests
	}
	for _, name := range sortedNames(requests) {
		if _, has := d.Capacity[name]; !has {
			list = append(list, shortage{name: string(name), missing: true, asked: requests[name]})
		}
	}
	used := n.state.AggregatedCapacity[d.id]
	for _, name := range sortedNames(d.Capacity) {
		capacity := d.Capacity[name]
		s := shortage{name: string(name), free: capacity.Value.DeepCopy()}
		s.asked, s.named = requests[name]
		s.charged, s.limit = charge(s.asked, s.named, capacity, c.features.FractionalCapacityRange)
		if taken := used[name]; taken != nil {
			s.free.Sub(*taken)
		}
		if s.limit != nil || s.charged.Cmp(s.free) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// charge is what a request costs the device, and the policy's maximum if it is
// more than that.
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

// roundUp is to the next min + n·step.
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
	if fractional && r.Step.CmpInt64(largestAmount) < 0 && asked.CmpInt64(largestAmount) < 0 {
		return *resource.NewMilliQuantity(steps(asked.MilliValue(), r.Min.MilliValue(), r.Step.MilliValue()), r.Step.Format)
	}
	return *resource.NewQuantity(steps(asked.Value(), r.Min.Value(), r.Step.Value()), r.Step.Format)
}

// counterShortages are the counters of the pool of which less is left than the
// device consumes. A shared device in use has consumed them already.
func (n *node) counterShortages(d *device) (list []shortage) {
	if len(d.ConsumesCounters) == 0 || isShared(d) && n.inUse(d) {
		return nil
	}
	left := n.countersLeft(d)
	for _, consumed := range d.ConsumesCounters {
		for _, name := range sortedNames(consumed.Counters) {
			id := consumed.CounterSet + "/" + name
			asked, free := consumed.Counters[name].Value, left[id]
			if asked.Cmp(free) > 0 {
				list = append(list, shortage{name: id, counter: true, asked: asked, charged: asked, free: free})
			}
		}
	}
	return list
}

// countersLeft are those of the device's pool, as set/counter.
func (n *node) countersLeft(d *device) map[string]resource.Quantity {
	left := make(map[string]resource.Quantity)
	for _, slice := range n.slices {
		if slice.Spec.Pool != d.slice.Spec.Pool || slice.Spec.Driver != d.slice.Spec.Driver {
			continue
		}
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				left[set.Name+"/"+name] = counter.Value.DeepCopy()
			}
		}
	}
	for i := range n.devices {
		other := &n.devices[i]
		if other.slice.Spec.Pool != d.slice.Spec.Pool || other.slice.Spec.Driver != d.slice.Spec.Driver || !n.inUse(other) {
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

// inUse holds for a device of which a claim has anything.
func (n *node) inUse(d *device) bool {
	if n.state.AllocatedDevices.Has(d.id) || n.state.AggregatedCapacity[d.id] != nil {
		return true
	}
	for share := range n.state.AllocatedSharedDeviceIDs {
		if share.GetDeviceID() == d.id {
			return true
		}
	}
	return false
}

// explainCapacity names the first capacity that is in the way, and what is left
// of it on the devices that were still in the race.
func (c *Cluster) explainCapacity(f *funnel, out []*device, n *node) (sentence, hint string) {
	if len(out) == 0 {
		return "there are no more", ""
	}
	first := c.shortages(f.alternative, out[0], n)[0]
	var lines []string
	for _, d := range out {
		for _, s := range c.shortages(f.alternative, d, n) {
			if s.name == first.name {
				lines = append(lines, s.on(d))
			}
		}
	}
	switch {
	case first.missing:
		return fmt.Sprintf("no device has a capacity %q", first.name), misspelled(first.name, out)
	case first.counter:
		return fmt.Sprintf("counter %s of the pool: %s", first.name, some(lines)), ""
	case !first.named:
		return fmt.Sprintf("capacity %s, which the request does not name, is charged as %s: %s", first.name, first.charged.String(), some(lines)),
			fmt.Sprintf("name %s in the request's capacity: without a default of the driver, all of it is charged", first.name)
	}
	text := fmt.Sprintf("%s %s asked", first.asked.String(), first.name)
	if first.asked.Cmp(first.charged) != 0 {
		text += fmt.Sprintf(", which is rounded up to %s", first.charged.String())
	}
	return text + ": " + some(lines), c.capacityHint(first, out, n)
}

func (s shortage) on(d *device) string {
	if s.limit != nil {
		return fmt.Sprintf("%s gives a request at most %s", d.Name, s.limit.String())
	}
	value := d.Capacity[resourceapi.QualifiedName(s.name)].Value
	if s.counter || s.free.Cmp(value) == 0 {
		return fmt.Sprintf("%s has %s", d.Name, s.free.String())
	}
	return fmt.Sprintf("%s has %s of %s left", d.Name, s.free.String(), value.String())
}

// misspelled finds the capacity that was probably meant.
func misspelled(name string, out []*device) string {
	known := make(map[string]bool)
	for _, d := range out {
		for has := range d.Capacity {
			known[string(has)] = true
		}
	}
	names := sortedNames(known)
	for _, has := range names {
		if plain(has) == plain(name) {
			why := ""
			if domain, _, found := strings.Cut(name, "/"); found && domain == out[0].slice.Spec.Driver {
				why = ", without the driver's prefix"
			}
			return fmt.Sprintf("write %s instead of %s%s: a request has to spell a capacity as the device does", has, name, why)
		}
	}
	if len(names) == 0 {
		return "these devices have no capacities: leave capacity out of the request"
	}
	return "the capacities there are: " + strings.Join(names, ", ")
}

// plain is a name without domain, case and punctuation, and without an s at its
// end.
func plain(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if isIdentifier(r) && r != '_' {
			return r
		}
		return -1
	}, name))
	return strings.TrimSuffix(name, "s")
}

// capacityHint helps where rounding decides, and where several devices would do
// what one cannot.
func (c *Cluster) capacityHint(s shortage, out []*device, n *node) string {
	if s.asked.Cmp(s.charged) < 0 && slices.ContainsFunc(out, func(d *device) bool { return s.asked.Cmp(freeOf(s.name, d, n)) <= 0 }) {
		return fmt.Sprintf("%s would fit, but %s comes in steps and is rounded up to %s: ask for a multiple of the step", s.asked.String(), s.name, s.charged.String())
	}
	var sum resource.Quantity
	for _, d := range out {
		sum.Add(freeOf(s.name, d, n))
	}
	if len(out) > 1 && s.charged.Cmp(sum) <= 0 {
		return fmt.Sprintf("together the devices have %s %s, but a request gets it from one device: split it into several requests", sum.String(), s.name)
	}
	return ""
}

func freeOf(name string, d *device, n *node) resource.Quantity {
	value := d.Capacity[resourceapi.QualifiedName(name)].Value
	free := value.DeepCopy()
	if taken := n.state.AggregatedCapacity[d.id][resourceapi.QualifiedName(name)]; taken != nil {
		free.Sub(*taken)
	}
	return free
}
