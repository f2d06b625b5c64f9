package funnel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Causes in the stages before and after the capacities, in the order of the stages.
type (
	incompletePool struct{ text string }
	invalidPool    struct{ text string }
	noDevices      struct{}
	fewDevices     struct{ has int }
	noMoreDevices  struct{ driver string }
	noDriver       struct{ driver, class string }
	otherClass     struct{ *request }
	rejected       struct{ *request }
	tainted        struct{ *request }
	inUse          struct{ devices []fit }
	noAttribute    struct {
		*constraint
		lacking int // index of the first request whose devices lack it
	}
	noValue  struct{ *constraint }
	tooAlike struct{ *constraint }
)

func (c incompletePool) String() string { return c.text }

func (incompletePool) Hint() string {
	return "the scheduler allocates no device of a pool until all its ResourceSlices exist: check that the driver publishes them"
}

func (c invalidPool) String() string { return c.text }

func (invalidPool) Hint() string {
	return "the scheduler allocates no device of an invalid pool: the driver has to publish other ResourceSlices"
}

func (noDevices) String() string { return "the node has no devices" }

func (noDevices) Hint() string {
	return "no ResourceSlice is for this node: check that the driver runs there"
}

func (c fewDevices) String() string    { return "the node has only " + devices(c.has) }
func (c noMoreDevices) String() string { return "the node has no more devices of driver " + c.driver }

func (c noDriver) String() string {
	return fmt.Sprintf("the node has no devices of driver %s, which class %s requires", c.driver, c.class)
}

func (c noDriver) Hint() string {
	return fmt.Sprintf("no ResourceSlice of %s is for this node: check that the driver runs there", c.driver)
}

func (c otherClass) String() string {
	out := len(c.failing(StageClass))
	sentence := fmt.Sprintf("%s %s not of class %s", devices(out), isAre(out), c.Class)
	if len(c.unmet) > 0 {
		sentence += ": " + unmetText(c.unmet)
	}
	return sentence
}

func (c otherClass) Hint() string {
	if c.absent == "" {
		return ""
	}
	return fmt.Sprintf("no node has a device whose %s, which class %s requires", c.absent, c.Class)
}

func (c rejected) String() string {
	why := unmetText(c.unmet)
	if why == "" {
		var expressions []string
		for _, selector := range c.Selectors {
			if selector.CEL != nil {
				expressions = append(expressions, message.OneLine(selector.CEL.Expression))
			}
		}
		why = strings.Join(expressions, " && ")
	}
	return fmt.Sprintf("the request's selectors reject %s: %s", devices(len(c.failing(StageSelector))), why)
}

// maxCondition limits the text of a condition in a sentence, in bytes.
const maxCondition = 256

// unmetText says which conditions are not met, and what the devices have instead.
func unmetText(list []unmet) string {
	var texts []string
	for _, u := range list {
		has := listed(u.devices, func(d *inventory.Device) string { return hasText(d, u.Condition) })
		texts = append(texts, fmt.Sprintf("%s is not met: %s", message.Short(message.OneLine(u.Text), maxCondition), has))
	}
	return strings.Join(texts, "; ")
}

// hasText says what a device has of what the condition reads.
func hasText(d *inventory.Device, c inventory.Condition) string {
	var parts []string
	for _, reading := range c.Reads {
		value, known := d.Slice.Spec.Driver, true
		switch {
		case reading.Capacity:
			value, known = capacityOf(d, reading.Name)
		case reading.Name != "":
			value, known = attributeOf(d, reading.Name)
		}
		name := string(reading.Name)
		if name == "" {
			name = "driver"
		}
		part := fmt.Sprintf("no %s", name)
		if known {
			part = fmt.Sprintf("%s %s", name, message.OneLine(value))
		}
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return d.Name
	}
	return fmt.Sprintf("%s has %s", d.Name, strings.Join(parts, ", "))
}

func (c tainted) String() string {
	var list []string
	for _, d := range c.failing(StageTaint) {
		for _, taint := range d.Taints {
			if c.refuses(taint) {
				list = append(list, fmt.Sprintf("%s has %s=%s:%s", d.Name, taint.Key, taint.Value, taint.Effect))
			}
		}
	}
	return "the request does not tolerate these taints: " + listText(list)
}

func (c inUse) String() string {
	names := listed(c.devices, func(d fit) string { return d.Name })
	return fmt.Sprintf("%s %s in use by other claims", names, isAre(len(c.devices)))
}

func (c noAttribute) String() string {
	return fmt.Sprintf("no device of request %s has the attribute %s, which a constraint matches", c.requests[c.lacking].Name, c.attribute)
}

func (c noValue) String() string {
	var texts []string
	for _, r := range c.requests {
		values := listed(sortedNames(r.values), func(value string) string {
			if names := r.values[value]; len(names) == 1 {
				return fmt.Sprintf("%s on %s", value, names[0])
			}
			return fmt.Sprintf("%s on %s", value, devices(len(r.values[value])))
		})
		texts = append(texts, fmt.Sprintf("%s finds %s", r.Name, values))
	}
	return fmt.Sprintf("no value of %s has enough devices for all requests that must match: %s", c.attribute, strings.Join(texts, "; "))
}

func (c tooAlike) String() string {
	values := c.values()
	return fmt.Sprintf("%s must differ in %s, but it has only %d values: %s", devices(c.differ), c.attribute, len(values), listText(values))
}
