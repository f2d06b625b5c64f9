package deviceclasses

import (
	"fmt"
	"slices"
	"strings"
)

// DeviceSelection says which PCI functions of a node are published as devices: those that
// a preset or an expression includes, and that nothing excludes. An empty selection
// publishes none. Expressions are CEL, as in a claim, over the published attributes.
type DeviceSelection struct {
	// Presets are names of predefined expressions.
	//
	//	presets: [gpu, vf]
	Presets []string `json:"presets,omitempty"`
	// Include are expressions. A function is included if one of them is true for it.
	//
	//	include: ['device.attributes["dra.numa"].vendorID == "1da3"']
	Include []string `json:"include,omitempty"`
	// Exclude are PCI addresses, such as 0000:3b:00.0, and expressions.
	//
	//	exclude: ["0000:3b:00.0"]
	Exclude []string `json:"exclude,omitempty"`
	// BindDrivers says whose DeviceConfig can ask for another kernel driver for a function.
	// Unless it is none, the daemon writes to the host's sysfs.
	//
	//	bindDrivers: class
	BindDrivers string `json:"bindDrivers,omitempty"`
}

// Values of DeviceSelection.BindDrivers. The default is BindNone.
const (
	BindNone  = "none"  // no kernel driver is bound
	BindClass = "class" // only that of a DeviceClass, which administrators write
	BindClaim = "claim" // also that of a claim, which users write
)

// Values of DeviceSelection.Presets. A function is in at most one of the first four.
const (
	PresetGPU  = "gpu"  // GPUs that are not virtual functions
	PresetNIC  = "nic"  // network controllers that are not virtual functions
	PresetNVMe = "nvme" // NVMe drives that are not virtual functions
	PresetVF   = "vf"   // virtual functions of any kind
	PresetVFIO = "vfio" // functions that a VFIO driver is bound to
)

// Presets returns the names of all presets, sorted.
func Presets() []string {
	return []string{PresetGPU, PresetNIC, PresetNVMe, PresetVF, PresetVFIO}
}

// Preset returns the expression of a preset.
func Preset(name string) (expression string, known bool) {
	switch name {
	case PresetGPU, PresetNIC, PresetNVMe:
		return fmt.Sprintf(`%s == %q && !%s`, Reading(AttributeKind), name, Reading(AttributeVirtualFunction)), true
	case PresetVF:
		return Reading(AttributeVirtualFunction), true
	case PresetVFIO:
		return Reading(AttributeVFIO), true
	}
	return "", false
}

// UnknownPreset returns the error for a name that is not a preset.
func UnknownPreset(name string) error {
	return fmt.Errorf("%q, allowed are %s", name, strings.Join(Presets(), ", "))
}

// validate checks what needs neither a machine nor CEL.
func (s DeviceSelection) validate() error {
	for i, name := range s.Presets {
		if !slices.Contains(Presets(), name) {
			return fmt.Errorf("devices.presets[%d]: %w", i, UnknownPreset(name))
		}
	}
	if allowed := []string{BindNone, BindClass, BindClaim}; s.BindDrivers != "" && !slices.Contains(allowed, s.BindDrivers) {
		return fmt.Errorf("devices.bindDrivers: %q, allowed are %s", s.BindDrivers, strings.Join(allowed, ", "))
	}
	return nil
}
