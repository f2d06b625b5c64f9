package funnel

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Causes that are about capacities and counters.
type (
	// split is a request whose capacities exist, but on different devices.
	split struct {
		*request
		parts []part
	}
	noCapacity    struct{ *lack }
	gateOff       struct{ gate string }
	fewCounters   struct{ *lack }
	fixedAmount   struct{ *lack }
	defaultAmount struct{ *lack }
	tooMuch       struct{ *lack }
)

func (c split) String() string {
	names := texts(sortedNames(c.Capacity.Requests))
	all := "all of " + strings.Join(names, ", ")
	if len(names) == 2 {
		all = "both " + strings.Join(names, " and ")
	}
	has := listed(c.parts, func(p part) string {
		return fmt.Sprintf("%s has %s", p.devices[0].Name, strings.Join(texts(p.names), " and "))
	})
	return fmt.Sprintf("no device has %s: %s", all, has)
}

// Hint has the requests to write instead. The constraint keeps them on one NUMA node, if
// the devices have it.
func (c split) Hint() string {
	var requests, names []string
	near := resourceapi.FullyQualifiedName(deviceclasses.NUMANodeAttributes()[0])
	aligned := true
	for _, p := range c.parts {
		name := strings.ReplaceAll(c.Name, "/", "-") + "-" + strings.ToLower(string(p.names[0]))
		var amounts []string
		for _, key := range p.names {
			amount := c.Capacity.Requests[key]
			amounts = append(amounts, fmt.Sprintf("%s: %s", key, spelling.Text(amount)))
		}
		selectors := ""
		if len(c.Selectors) > 0 {
			selectors = ", selectors: [as now]"
		}
		names = append(names, name)
		requests = append(requests, fmt.Sprintf("{name: %s, exactly: {deviceClassName: %s%s, capacity: {requests: {%s}}}}", name, c.Class, selectors, strings.Join(amounts, ", ")))
		aligned = aligned && slices.ContainsFunc(p.devices, func(d *inventory.Device) bool { _, has := attributeOf(d, near); return has })
	}
	hint := fmt.Sprintf("a request gets its capacities from one device: write %d requests, %s", len(c.parts), strings.Join(requests, ", "))
	if aligned {
		hint += fmt.Sprintf(", with the constraint {requests: [%s], matchAttribute: %s}", strings.Join(names, ", "), near)
	}
	return hint
}

func (c noCapacity) String() string { return fmt.Sprintf("no device has a capacity named %q", c.name) }

// Hint looks for the capacity that the user probably meant.
func (c noCapacity) Hint() string {
	known := make(map[string]bool)
	for _, s := range c.all {
		for has := range s.device.Capacity {
			known[string(has)] = true
		}
	}
	names := sortedNames(known)
	for _, has := range names {
		if simplify(has) == simplify(c.name) {
			why := ""
			if domain, _, found := strings.Cut(c.name, "/"); found && domain == c.all[0].device.Slice.Spec.Driver {
				why = ", without the driver's prefix"
			}
			return fmt.Sprintf("write %s instead of %s%s: a request must spell a capacity as the device does", has, c.name, why)
		}
	}
	if len(names) == 0 {
		return "these devices have no capacities: remove capacity from the request"
	}
	return "the devices have these capacities: " + strings.Join(names, ", ")
}

// simplify removes the domain, punctuation and a final s from a name, and converts it
// to lower case, so that similar names are equal.
func simplify(name string) string {
	name = name[strings.LastIndex(name, "/")+1:]
	name = strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, name))
	return strings.TrimSuffix(name, "s")
}

func (c gateOff) String() string {
	what := "consume counters"
	if c.gate == bindingGate {
		what = "have binding conditions"
	}
	return fmt.Sprintf("the devices %s, and the feature gate %s is off", what, c.gate)
}

func (c fewCounters) String() string {
	return fmt.Sprintf("too little of the pool's counter %s is left: %s", c.name, c.devices())
}

func (c fixedAmount) String() string {
	return fmt.Sprintf("every request takes %s %s of one device: %s", spelling.Text(c.charged), c.name, c.devices())
}

func (c defaultAmount) String() string {
	return fmt.Sprintf("the request does not name capacity %s, so it takes %s of one device: %s", c.name, spelling.Text(c.charged), c.devices())
}

func (c defaultAmount) Hint() string {
	return fmt.Sprintf("name %s in the request's capacity: otherwise the request takes the driver's default, or all of it", c.name)
}

func (c tooMuch) String() string {
	rounded := ""
	if c.asked.Cmp(c.charged) != 0 {
		rounded = fmt.Sprintf(", rounded up to %s", spelling.Text(c.charged))
	}
	return fmt.Sprintf("asks for %s %s of one device%s: %s", spelling.Text(c.asked), c.name, rounded, c.devices())
}

// Hint is for an amount that would fit without rounding, that several devices have
// together, or that no request can have.
func (c tooMuch) Hint() string {
	if c.asked.Cmp(c.charged) < 0 && slices.ContainsFunc(c.all, func(s shortage) bool { return c.asked.Cmp(s.free) <= 0 }) {
		return fmt.Sprintf("%s would fit, but the scheduler rounds %s up to %s: ask for a multiple of the step", spelling.Text(c.asked), c.name, spelling.Text(c.charged))
	}
	all := c.request.Mode == resourceapi.DeviceAllocationModeAll // several requests would not get more
	enough := func(list []shortage) bool {
		var sum resource.Quantity
		for _, s := range list {
			sum.Add(s.free)
		}
		return len(list) > 1 && !all && c.charged.Cmp(sum) <= 0
	}
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Values(c.places())), enough):
		return fmt.Sprintf("a request gets its %s from one device, and no device has enough: split the request into several", c.name)
	case c.limit != nil:
		return fmt.Sprintf("ask for at most %s %s: no request gets more of one device", spelling.Text(*c.limit), c.name)
	case enough(c.all):
		return fmt.Sprintf("no device has enough %s, and the claim cannot have devices that differ in %s: ask for less", c.name, strings.Join(texts(c.request.matched), ", "))
	}
	return ""
}

// places returns the devices in groups that have in common what devices of the request
// must have in common.
func (l *lack) places() map[string][]shortage {
	places := make(map[string][]shortage)
	for _, s := range l.all {
		values := ""
		for _, name := range l.request.matched {
			value, _ := attributeOf(s.device, name)
			values += value + "\n"
		}
		places[values] = append(places[values], s)
	}
	return places
}

// devices says what the devices lack.
func (l *lack) devices() string { return listed(l.all, shortage.text) }

// text says what the device lacks.
func (s shortage) text() string {
	if s.limit != nil {
		return fmt.Sprintf("%s allows at most %s per request", s.device.Name, spelling.Text(*s.limit))
	}
	if s.counter {
		return fmt.Sprintf("%s needs %s, %s left", s.device.Name, spelling.Text(s.charged), spelling.Text(s.free))
	}
	if s.free.Cmp(s.value) == 0 {
		return fmt.Sprintf("%s has %s", s.device.Name, spelling.Text(s.free))
	}
	return fmt.Sprintf("%s has %s of %s left", s.device.Name, spelling.Text(s.free), spelling.Text(s.value))
}
