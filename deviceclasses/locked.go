package deviceclasses

import (
	"fmt"
	"slices"
	"strings"
)

// setting is a field of a configuration, named as in the document. A field that has no
// value has its default.
type setting struct{ name, value string }

// LockedError says that a claim changes a field that its class locks.
type LockedError struct {
	Class  string // name of the DeviceClass
	Field  string
	Value  string // of the claim; "" for none
	Locked string // value of the class; "" for none
}

// Error implements error.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s: %q, allowed is %q, because DeviceClass %q locks this field", e.Field, e.Value, e.Locked, e.Class)
}

// checkLocked refuses names of fields that do not exist.
func checkLocked(locked []string, settings []setting) error {
	names := namesOf(settings)
	for i, name := range locked {
		if !slices.Contains(names, name) {
			return fmt.Errorf("locked[%d]: %q, allowed are %s", i, name, strings.Join(names, ", "))
		}
	}
	return nil
}

func namesOf(settings []setting) (names []string) {
	for _, one := range settings {
		names = append(names, one.name)
	}
	return names
}

// checkUnchanged refuses a claim's settings that differ from those of the class in a
// locked field. Both have the same fields in the same order.
func checkUnchanged(class string, locked []string, ofClass, ofClaim []setting) error {
	for i, one := range ofClaim {
		if slices.Contains(locked, one.name) && one.value != ofClass[i].value {
			return &LockedError{class, one.name, one.value, ofClass[i].value}
		}
	}
	return nil
}

// LockableFields returns the names of the fields that Lock can lock.
func LockableFields() []string {
	return slices.Concat(namesOf(ZoneConfig{}.settings()), namesOf(PerformanceSettings{}.settings()))
}

// Lock locks fields of the ZoneConfig and the PerformanceConfig.
func (c *RequestConfig) Lock(names []string) error {
	for _, name := range names {
		switch {
		case slices.Contains(namesOf(c.Zone.settings()), name):
			c.Zone.Locked = append(c.Zone.Locked, name)
		case slices.Contains(namesOf(c.Performance.settings()), name):
			c.Performance.Locked = append(c.Performance.Locked, name)
		default:
			return fmt.Errorf("locked %q, allowed are %s", name, strings.Join(LockableFields(), ", "))
		}
	}
	return nil
}
