package holdings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// attribute returns an attribute by the name of package deviceclasses; the zero value if
// the device lacks it. The device may be of any driver.
func (e *entry) attribute(name resourceapi.QualifiedName) resourceapi.DeviceAttribute {
	if e.published == nil {
		return resourceapi.DeviceAttribute{}
	}
	value, _ := spelling.Attribute(e.id.driver, e.published.Attributes, deviceclasses.FullName(name))
	return value
}

// intAttribute returns a number, or nil if there is no such attribute. A list of one
// number counts as that number.
func (e *entry) intAttribute(name resourceapi.QualifiedName) *int64 {
	value := e.attribute(name)
	if len(value.IntValues) == 1 {
		return &value.IntValues[0]
	}
	return value.IntValue
}

// isZone reports whether the device is a zone, according to the published kind. A
// device that is not published counts as a zone if it belongs to the driver that
// publishes zones, unless it is a cache.
func (e *entry) isZone() bool {
	if e.id.driver != deviceclasses.DriverName {
		return false
	}
	if e.published == nil {
		return !e.isCache()
	}
	return deviceclasses.IsZoneKind(e.kind())
}

// isCache reports whether the device is a pool of a cache, according to the published
// kind. What claims hold of a device that is not published says the same.
func (e *entry) isCache() bool {
	if e.id.driver != deviceclasses.DriverName {
		return false
	}
	if e.published != nil {
		return e.kind() == deviceclasses.KindCache
	}
	return slices.ContainsFunc(e.shares, func(s Share) bool {
		_, ways := s.Amounts[string(deviceclasses.CapacityWays)]
		_, member := s.Amounts[string(deviceclasses.CapacityMembers)]
		return s.Cache != nil || ways || member
	})
}

// kind returns the published kind of a device of this driver, or "".
func (e *entry) kind() string {
	return ptr.Deref(e.attribute(deviceclasses.AttributeKind).StringValue, "")
}

// attributes returns all attributes as text, by their full names.
func (e *entry) attributes() map[string]string {
	list := make(map[string]string)
	if e.published == nil {
		return list
	}
	for name := range e.published.Attributes {
		full := spelling.FullName(e.id.driver, name)
		value, _ := spelling.Attribute(e.id.driver, e.published.Attributes, full)
		list[string(full)] = valueOf(value)
	}
	return list
}

// Attribute returns an attribute by the name of package deviceclasses, as text.
func (d *Device) Attribute(name resourceapi.QualifiedName) (value string, has bool) {
	value, has = d.Attributes[string(deviceclasses.FullName(name))]
	return value, has
}

// Product returns the vendor's name and the product's of a PCI function that this driver
// publishes, such as "NVIDIA Corporation GA100 [A100 SXM4 80GB]". It is empty for other
// devices, and where the driver's PCI ID database lacks the vendor or the product.
func (d *Device) Product() string {
	of := func(name resourceapi.QualifiedName) string { return d.Attributes[string(deviceclasses.FullName(name))] }
	vendor, product := of(deviceclasses.AttributeVendor), of(deviceclasses.AttributeProduct)
	if d.Driver != deviceclasses.DriverName || vendor == "" || product == "" ||
		vendor == of(deviceclasses.AttributeVendorID) || product == of(deviceclasses.AttributeDeviceID) {
		return ""
	}
	return vendor + " " + product
}

func valueOf(a resourceapi.DeviceAttribute) string {
	var values []string
	for _, value := range a.IntValues {
		values = append(values, strconv.FormatInt(value, 10))
	}
	for _, value := range a.BoolValues {
		values = append(values, strconv.FormatBool(value))
	}
	values = append(append(values, a.StringValues...), a.VersionValues...)
	switch {
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10)
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue)
	case a.StringValue != nil:
		return *a.StringValue
	case a.VersionValue != nil:
		return *a.VersionValue
	}
	return strings.Join(values, ", ")
}

// rank puts the capacities of zones first, then the ways of caches.
func rank(name string) int {
	switch {
	case name == string(deviceclasses.CapacityCPU):
		return 0
	case name == string(deviceclasses.CapacityMemory):
		return 1
	case strings.HasPrefix(name, hugepagesPrefix):
		return 2
	case name == string(deviceclasses.CapacityWays):
		return 3
	}
	return 4
}

const hugepagesPrefix = deviceclasses.CapacityHugepagesPrefix

// compareSizes compares two hugepage capacities by page size.
func compareSizes(a, b string) int {
	sizeA, errA := resource.ParseQuantity(strings.TrimPrefix(a, hugepagesPrefix))
	sizeB, errB := resource.ParseQuantity(strings.TrimPrefix(b, hugepagesPrefix))
	if errA != nil || errB != nil {
		return 0
	}
	return cmp.Compare(sizeA.Value(), sizeB.Value())
}
