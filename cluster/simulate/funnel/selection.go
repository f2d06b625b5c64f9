package funnel

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
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

// unmet is a condition, and the devices that do not meet it.
type unmet struct {
	inventory.Condition
	devices []*inventory.Device
}

// unmet returns for each device the first condition that it does not meet. It returns
// nothing if there is only one condition, or for devices of other drivers and kinds, which
// are not meant.
func (v *View) unmet(selectors []resourceapi.DeviceSelector, out []fit) (list []unmet) {
	conditions := v.Selectors.Conditions(selectors)
	if len(conditions) < 2 {
		return nil
	}
	for _, d := range out {
		fails := func(c inventory.Condition) bool { return !v.Selectors.Meets(c, d.Device) }
		first := slices.IndexFunc(conditions, fails)
		if first < 0 || slices.ContainsFunc(conditions, func(c inventory.Condition) bool { return (isDriver(c) || isKind(c)) && fails(c) }) {
			continue
		}
		i := slices.IndexFunc(list, func(u unmet) bool { return u.Text == conditions[first].Text })
		if i < 0 {
			i = len(list)
			list = append(list, unmet{Condition: conditions[first]})
		}
		list[i].devices = append(list[i].devices, d.Device)
	}
	return list
}
