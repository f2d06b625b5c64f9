package deviceclasses

import (
	"fmt"
	"slices"
	"strings"
)

// DeviceSelection is which PCI functions of a node are published as devices:
// those that a preset or an expression includes, and none excludes. Empty, it is
// none. An expression is CEL as in a claim, over the attributes that are
// published.
type DeviceSelection struct {
	// Presets are names of expressions that are shipped.
	//
	//	presets: [gpu, vf]
	Presets []string `json:"presets,omitempty"`
	// Include are expressions; a function is included if one of them holds.
	//
	//	include: ['device.attributes["dra.numa"].vendorID == "1da3"']
	Include []string `json:"include,omitempty"`
	// Exclude are PCI addresses, such as 0000:3b:00.0, and expressions.
	//
	//	exclude: ["0000:3b:00.0"]
	Exclude []string `json:"exclude,omitempty"`
	// BindDrivers lets claims have another kernel driver bound to a function that
	// they hold (DeviceConfig). The daemon then writes to the host's sysfs.
	//
	//	bindDrivers: true
	BindDrivers bool `json:"bindDrivers,omitempty"`
}

// What a NodeConfig may say of Presets. Each function that is no bridge is in one
// of the first three, in PresetVF, or in none of these four.
const (
	PresetGPU  = "gpu"  // GPUs, but virtual functions
	PresetNIC  = "nic"  // network controllers, but virtual functions
	PresetNVMe = "nvme" // NVMe drives, but virtual functions
	PresetVF   = "vf"   // virtual functions of any kind
	PresetVFIO = "vfio" // whatever a VFIO driver is bound to
)

// Presets are the names of all presets, sorted.
func Presets() []string {
	return []string{PresetGPU, PresetNIC, PresetNVMe, PresetVF, PresetVFIO}
}

// Preset returns the expression of a preset.
func Preset(name string) (expression string, known bool) {
	const ours = `device.attributes["` + DriverName + `"]`
	switch name {
	case PresetGPU, PresetNIC, PresetNVMe:
		return fmt.Sprintf(`%s.kind == %q && !%s.virtualFunction`, ours, name, ours), true
	case PresetVF:
		return ours + ".virtualFunction", true
	case PresetVFIO:
		return ours + ".vfio", true
	}
	return "", false
}

// UnknownPreset is the error for a name that is no preset's.
func UnknownPreset(name string) error {
	return fmt.Errorf("%q, allowed are %s", name, strings.Join(Presets(), ", "))
}

// validate looks at what needs no machine and no CEL.
func (s DeviceSelection) validate() error {
	for i, name := range s.Presets {
		if !slices.Contains(Presets(), name) {
			return fmt.Errorf("devices.presets[%d]: %w", i, UnknownPreset(name))
		}
	}
	return nil
}
