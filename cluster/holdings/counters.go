package holdings

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// counterID identifies a counter that devices of a pool share.
type counterID struct {
	poolID
	set, name string
}

// counter is a counter and what the held devices consume of it.
type counter struct {
	total *resource.Quantity // nil if no slice has it
	used  resource.Quantity
}

func (inv *inventory) counter(id counterID) *counter {
	if inv.counters[id] == nil {
		inv.counters[id] = &counter{}
	}
	return inv.counters[id]
}

// consume adds what a device consumes of its counters.
func (inv *inventory) consume(e *entry) {
	if e.published == nil {
		return
	}
	for _, consumption := range e.published.ConsumesCounters {
		for name, amount := range consumption.Counters {
			inv.counter(counterID{e.id.poolID, consumption.CounterSet, name}).used.Add(amount.Value)
		}
	}
}

// missingCounter names the first counter that does not have enough left for a device.
// It returns "" if there is none.
func (inv *inventory) missingCounter(e *entry) string {
	for _, consumption := range e.published.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			amount := consumption.Counters[name].Value
			counter := inv.counter(counterID{e.id.poolID, consumption.CounterSet, name})
			if counter.total == nil {
				return fmt.Sprintf("counter %s of %s is not published", name, consumption.CounterSet)
			}
			left := counter.total.DeepCopy()
			left.Sub(counter.used)
			if amount.Cmp(left) > 0 {
				return fmt.Sprintf("counter %s of %s has only %s left, and the device needs %s", name, consumption.CounterSet, left.String(), amount.String())
			}
		}
	}
	return ""
}
