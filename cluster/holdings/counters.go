package holdings

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
)

// counterID names a counter that devices of a pool share.
type counterID struct {
	poolID
	set, name string
}

// counter is what the devices that are held consume of it.
type counter struct {
	total *resource.Quantity // nil: no slice has it
	used  resource.Quantity
}

func (b *book) counter(id counterID) *counter {
	if b.counters[id] == nil {
		b.counters[id] = &counter{}
	}
	return b.counters[id]
}

// consume takes what a device needs of its counters.
func (b *book) consume(e *entry) {
	if e.published == nil {
		return
	}
	for _, consumption := range e.published.ConsumesCounters {
		for name, amount := range consumption.Counters {
			b.counter(counterID{e.id.poolID, consumption.CounterSet, name}).used.Add(amount.Value)
		}
	}
}

// lacking is the first counter of which too little is left for a device; "" is
// none.
func (b *book) lacking(e *entry) string {
	for _, consumption := range e.published.ConsumesCounters {
		for _, name := range slices.Sorted(maps.Keys(consumption.Counters)) {
			amount := consumption.Counters[name].Value
			counter := b.counter(counterID{e.id.poolID, consumption.CounterSet, name})
			if counter.total == nil {
				return fmt.Sprintf("counter %s of %s is not published", name, consumption.CounterSet)
			}
			left := counter.total.DeepCopy()
			left.Sub(counter.used)
			if amount.Cmp(left) > 0 {
				return fmt.Sprintf("counter %s of %s has %s left, it needs %s", name, consumption.CounterSet, left.String(), amount.String())
			}
		}
	}
	return ""
}
