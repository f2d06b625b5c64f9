package attached

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Selection says which functions a node publishes. The zero value selects none.
type Selection struct {
	include, exclude []expression
	addresses        []string // excluded functions
}

// NewSelection compiles what the operator wrote. The error names the field, the
// position in its expression, and what is wrong there.
func NewSelection(config deviceclasses.DeviceSelection) (Selection, error) {
	var s Selection
	for i, name := range config.Presets {
		text, known := deviceclasses.Preset(name)
		if !known {
			return Selection{}, fmt.Errorf("devices.presets[%d]: %w", i, deviceclasses.UnknownPreset(name))
		}
		compiled, err := compile(text)
		if err != nil {
			return Selection{}, fmt.Errorf("preset %s: %w", name, err)
		}
		s.include = append(s.include, compiled)
	}
	for i, text := range config.Include {
		compiled, err := compile(text)
		if err != nil {
			return Selection{}, fmt.Errorf("devices.include[%d]: %w", i, err)
		}
		s.include = append(s.include, compiled)
	}
	for i, text := range config.Exclude {
		if numa.IsPCIAddress(text) {
			s.addresses = append(s.addresses, text)
			continue
		}
		compiled, err := compile(text)
		if err != nil {
			return Selection{}, fmt.Errorf("devices.exclude[%d]: want a PCI address such as 0000:3b:00.0, or an expression: %w", i, err)
		}
		s.exclude = append(s.exclude, compiled)
	}
	return s, nil
}

// IsEmpty reports whether the selection publishes nothing on any machine.
func (s Selection) IsEmpty() bool { return len(s.include) == 0 }

// has reports whether the device should be published. An expression that reads an
// attribute which the device lacks is not true for it. An expression that fails for
// another reason counts as true in exclude, and as not true in include.
func (s Selection) has(d resourceapi.Device) bool {
	if slices.Contains(s.addresses, stringOf(d, deviceclasses.AttributePCIBusID)) {
		return false
	}
	for _, exclude := range s.exclude {
		if holds, err := exclude.holds(d); holds || err != nil {
			return false
		}
	}
	return slices.ContainsFunc(s.include, func(include expression) bool {
		holds, err := include.holds(d)
		return holds && err == nil
	})
}
