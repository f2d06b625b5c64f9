package deviceclasses

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Set sets one field of the ZoneConfig, the PerformanceConfig or the CacheConfig, whichever
// has it. The text is the value as in a document. An error names the field and what is
// allowed.
func (c *RequestConfig) Set(name, text string) error {
	if !slices.Contains(SettableFields(), name) {
		return fmt.Errorf("%s: there is no such field, allowed are %s", name, strings.Join(SettableFields(), ", "))
	}
	for _, config := range []interface{ Validate() error }{&c.Zone, &c.Performance, &c.Cache} {
		found, err := setField(reflect.ValueOf(config).Elem(), name, text)
		if found {
			return cmp.Or(err, config.Validate())
		}
	}
	return nil // impossible: one of them has the field
}

// setField sets the field of a struct that has this name in documents, if there is one.
func setField(config reflect.Value, name, text string) (found bool, err error) {
	for _, field := range reflect.VisibleFields(config.Type()) {
		if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); key != name {
			continue
		}
		value := config.FieldByIndex(field.Index)
		if value.Kind() == reflect.Pointer {
			value.Set(reflect.New(value.Type().Elem()))
			value = value.Elem()
		}
		switch value.Kind() {
		case reflect.Bool:
			set, err := strconv.ParseBool(text)
			if err != nil {
				return true, fmt.Errorf("%s: %q, allowed are true, false", name, text)
			}
			value.SetBool(set)
		case reflect.Int:
			number, err := strconv.Atoi(text)
			if err != nil {
				return true, fmt.Errorf("%s: %q, want a whole number", name, text)
			}
			value.SetInt(int64(number))
		default:
			value.SetString(text)
		}
		return true, nil
	}
	return false, nil
}

// SettableFields returns the names of the fields that Set can set. Which CPUs a cache is for
// is no such field, because it depends on the other requests of the claim.
func SettableFields() []string {
	ofCaches := slices.DeleteFunc(namesOf(CacheConfig{}.settings()), func(name string) bool { return name == "cpus" })
	return slices.Concat(LockableFields(), ofCaches)
}

// ValuesOf returns the values that a field may have, or nothing if they are not a list.
func ValuesOf(field string) []string {
	for _, one := range slices.Concat(ZoneConfig{}.choices(), PerformanceSettings{}.choices()) {
		if one.field == field {
			return one.allowed
		}
	}
	return nil
}
