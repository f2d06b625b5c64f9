package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Filter says which zones a claim or class accepts.
type Filter struct {
	CoreType    string // "" or what zones publish: standard, performance, efficient, mixed
	Exclusivity string // "" or what zones publish: kernel, cooperative, none
	MemoryTier  *int64 // of memory_tier<N>, nil is any
	Socket      *int64 // nil is any
	Node        *int64 // NUMA node, nil is any
	L3          bool   // only zones that lie in one level-3 cache; the memory of a wish is then from a zone of their NUMA node
}

// IsEmpty reports whether any zone is accepted.
func (f Filter) IsEmpty() bool { return f == Filter{} }

func (f Filter) check() error {
	for _, field := range []struct {
		name, value string
		allowed     []string
	}{
		{"core type", f.CoreType, deviceclasses.CoreTypes()},
		{"exclusivity", f.Exclusivity, deviceclasses.Exclusivities()},
	} {
		if field.value != "" && !slices.Contains(field.allowed, field.value) {
			return fmt.Errorf("%s %q, allowed are %s", field.name, field.value, strings.Join(field.allowed, ", "))
		}
	}
	for _, field := range []struct {
		name  string
		value *int64
	}{{"memory tier", f.MemoryTier}, {"socket", f.Socket}, {"NUMA node", f.Node}} {
		if field.value != nil && *field.value < 0 {
			return fmt.Errorf("%s %d: want 0 or more", field.name, *field.value)
		}
	}
	return nil
}

// terms are the conditions in CEL. An attribute that a zone may lack is read with a
// default that matches nothing.
func (f Filter) terms() (terms []string) {
	text := func(attribute resourceapi.QualifiedName, value string) {
		if value != "" {
			terms = append(terms, fmt.Sprintf(`%s == %q`, deviceclasses.ReadingOr(attribute, `""`), value))
		}
	}
	number := func(attribute resourceapi.QualifiedName, value *int64) {
		if value != nil {
			terms = append(terms, fmt.Sprintf(`%s == %d`, deviceclasses.ReadingOr(attribute, "-1"), *value))
		}
	}
	text(deviceclasses.AttributeCoreType, f.CoreType)
	text(deviceclasses.AttributeExclusivity, f.Exclusivity)
	number(deviceclasses.AttributeMemoryTier, f.MemoryTier)
	number(deviceclasses.AttributeSocket, f.Socket)
	number(deviceclasses.AttributeNUMANode, f.Node)
	if f.L3 {
		terms = append(terms, fmt.Sprintf("%q in device.attributes[%q]", deviceclasses.AttributeL3, deviceclasses.DriverName))
	}
	return terms
}

// ofDriver begins every selector, because selectors are evaluated on the devices of all
// drivers.
const ofDriver = `device.driver == "` + deviceclasses.DriverName + `"`

// Selectors are the selectors of a request, whose class already selects zones.
func (f Filter) Selectors() []resourceapi.DeviceSelector {
	if f.IsEmpty() {
		return nil
	}
	return selector(append([]string{ofDriver}, f.terms()...))
}

func selector(terms []string) []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: strings.Join(terms, " && ")}}}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
