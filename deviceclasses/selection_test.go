package deviceclasses

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestADeviceSelectionIsPartOfANodeConfig(t *testing.T) {
	config := mustDecodeNodeConfig(t, validNodeConfig+`devices:
  presets: [gpu, vf]
  include:
  - device.attributes["dra.numa"].kind == "pci"
  exclude: ["0000:3b:00.0"]
`)
	if d := config.Devices; !slices.Equal(d.Presets, []string{"gpu", "vf"}) || len(d.Include) != 1 || !slices.Equal(d.Exclude, []string{"0000:3b:00.0"}) {
		t.Errorf("devices %+v", d)
	}
}

func TestAProfileReplacesTheWholeDeviceSelection(t *testing.T) {
	config := mustDecodeNodeConfig(t, nodeHead+`
devices: {presets: [gpu], exclude: ["0000:3b:00.0"]}
profiles:
- nodeSelector: {pool: batch}
  devices: {presets: [nic]}
- nodeSelector: {pool: web}
  devices: {}
- nodeSelector: {size: large}
  reservedCPUs: 0-3
`)
	for label, want := range map[string]DeviceSelection{
		"pool=batch": {Presets: []string{"nic"}},
		"pool=web":   {},
		"size=large": {Presets: []string{"gpu"}, Exclude: []string{"0000:3b:00.0"}},
	} {
		key, value, _ := strings.Cut(label, "=")
		if got := config.For(map[string]string{key: value}).Devices; !reflect.DeepEqual(got, &want) {
			t.Errorf("node with %s: %+v, want %+v", label, got, want)
		}
	}
	_, err := DecodeNodeConfig([]byte(nodeHead + "profiles: [{nodeSelector: {a: b}, devices: {presets: [tpu]}}]"))
	if err == nil || err.Error() != `profiles[0].devices.presets[0]: "tpu", allowed are gpu, nic, nvme, vf, vfio` {
		t.Errorf("error %v", err)
	}
}

func TestNonsenseInADeviceSelectionIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"presets: [gpu, GPU]": `devices.presets[1]: "GPU", allowed are gpu, nic, nvme, vf, vfio`,
		"presets: gpu":        "devices.presets: want a list, not a string",
		"include: [1]":        "devices.include: want a string, not a number",
		"bindDrivers: Claim":  `devices.bindDrivers: "Claim", allowed are none, class, claim`,
		"bindDrivers: true":   "devices.bindDrivers: want a string, not a bool",
		"expression: x":       `unknown field "devices.expression", allowed are presets, include, exclude, bindDrivers`,
	} {
		_, err := DecodeNodeConfig([]byte(validNodeConfig + "devices:\n  " + text + "\n"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want one line with %q", text, err, want)
		}
	}
}

func TestEveryPresetHasAnExpression(t *testing.T) {
	if !slices.IsSorted(Presets()) {
		t.Errorf("presets %v are not sorted", Presets())
	}
	for _, name := range Presets() {
		if expression, known := Preset(name); !known || expression == "" {
			t.Errorf("preset %s is %q", name, expression)
		}
	}
	if expression, known := Preset("bridge"); known || expression != "" {
		t.Errorf("preset bridge is %q", expression)
	}
}
