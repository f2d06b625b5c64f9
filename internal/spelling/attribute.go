// Package spelling knows the two spellings of attributes and capacities of a device, which
// amounts a program can compute with, and how people read them.
package spelling

import (
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// FullName returns the name of an attribute with its domain, as selectors and constraints
// have it. In a ResourceSlice, an attribute without a domain belongs to the domain of the
// driver: socket of the driver dra.numa is dra.numa/socket.
func FullName(driver string, name resourceapi.QualifiedName) resourceapi.FullyQualifiedName {
	if strings.Contains(string(name), "/") {
		return resourceapi.FullyQualifiedName(name)
	}
	return resourceapi.FullyQualifiedName(driver + "/" + string(name))
}

// Attribute returns an attribute of a device of the driver by its full name, however the device
// spells it. Has is false if the device lacks the attribute. If a device has both
// spellings, the full name counts, as for constraints in the scheduler.
func Attribute(driver string, attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, name resourceapi.FullyQualifiedName) (value resourceapi.DeviceAttribute, has bool) {
	if value, has = attributes[resourceapi.QualifiedName(name)]; has {
		return value, true
	}
	if domain, short, _ := strings.Cut(string(name), "/"); domain == driver {
		value, has = attributes[resourceapi.QualifiedName(short)]
	}
	return value, has
}
