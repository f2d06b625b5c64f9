package funnel

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/attribute"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// IsKind reports whether an attribute says the kind of devices, in whatever domain.
func IsKind(attribute resourceapi.FullyQualifiedName) bool {
	return strings.HasSuffix(string(attribute), "/"+string(deviceclasses.AttributeKind))
}

// Kind returns a text that identifies a value of such an attribute.
func Kind(attribute resourceapi.FullyQualifiedName, kind string) string {
	return fmt.Sprintf("%s is %s", attribute, kind)
}

// driverOf returns the driver that the class requires, or "" if it requires none.
func (v *View) driverOf(class *resourceapi.DeviceClass) string {
	for _, condition := range v.Selectors.Conditions(class.Spec.Selectors) {
		if isDriver(condition) {
			return condition.Equals
		}
	}
	return ""
}

func isDriver(c inventory.Condition) bool {
	return c.Equals != "" && len(c.Reads) == 1 && c.Reads[0].Name == ""
}

// kindOf returns the kind that the class requires, or "" if it requires none.
func (v *View) kindOf(class *resourceapi.DeviceClass) string {
	for _, condition := range v.Selectors.Conditions(class.Spec.Selectors) {
		if isKind(condition) {
			return Kind(condition.Reads[0].Name, condition.Equals)
		}
	}
	return ""
}

func isKind(c inventory.Condition) bool {
	return c.Equals != "" && len(c.Reads) == 1 && !c.Reads[0].Capacity && IsKind(c.Reads[0].Name)
}

// maxCondition limits the text of a condition in a sentence, in bytes.
const maxCondition = 256

// unmet says which condition each device does not meet, and what the device has instead.
// It is "" if there is only one condition, or for devices of other drivers and kinds,
// which are not meant.
func (v *View) unmet(selectors []resourceapi.DeviceSelector, out []*inventory.Device) string {
	conditions := v.Selectors.Conditions(selectors)
	if len(conditions) < 2 {
		return ""
	}
	var texts []string
	has := make(map[string][]string) // what devices have, by the condition that they do not meet
	for _, d := range out {
		fails := func(c inventory.Condition) bool { return !v.Selectors.Meets(c, d) }
		if slices.ContainsFunc(conditions, func(c inventory.Condition) bool { return (isDriver(c) || isKind(c)) && fails(c) }) {
			continue
		}
		if i := slices.IndexFunc(conditions, fails); i >= 0 {
			text := conditions[i].Text
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
			has[text] = append(has[text], hasText(d, conditions[i]))
		}
	}
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%s is not met: %s", message.Short(message.OneLine(text), maxCondition), listText(has[text]))
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

// capacityOf returns a capacity of the device as text.
func capacityOf(d *inventory.Device, name resourceapi.FullyQualifiedName) (text string, has bool) {
	for spelled, capacity := range d.Capacity {
		if attribute.FullName(d.Slice.Spec.Driver, spelled) == name {
			return capacity.Value.String(), true
		}
	}
	return "", false
}
