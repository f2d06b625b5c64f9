package deviceclasses_test

import (
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// rowsOf returns the rows of a kind of devices.
func rowsOf(kind string) []deviceclasses.AttributeRow {
	return slices.DeleteFunc(deviceclasses.Attributes(), func(row deviceclasses.AttributeRow) bool { return !slices.Contains(row.Kinds, kind) })
}

func TestTheTableOfAttributesIsConsistent(t *testing.T) {
	for _, kind := range slices.Concat(deviceclasses.ZoneKinds(), []string{deviceclasses.KindCache}, deviceclasses.FunctionKinds()) {
		known := map[resourceapi.QualifiedName]deviceclasses.AttributeRow{}
		for _, row := range rowsOf(kind) {
			if _, twice := known[row.Name]; twice || row.Means == "" {
				t.Errorf("%s of %s: in the table already: %t, means %q", row.Name, kind, twice, row.Means)
			}
			if row.Same != "" && (known[row.Same].Name == "" || known[row.Same].Type != row.Type || known[row.Same].Absent != row.Absent) {
				t.Errorf("%s of %s cannot be the same as %q", row.Name, kind, row.Same)
			}
			if row.OnlyIf != "" && (known[row.OnlyIf].Type != deviceclasses.Flag || row.Absent == "") {
				t.Errorf("%s of %s cannot depend on %q", row.Name, kind, row.OnlyIf)
			}
			if len(row.Words) > 0 && row.Type != deviceclasses.Text || row.Closed && len(row.Words) == 0 {
				t.Errorf("%s of %s has the words %q", row.Name, kind, row.Words)
			}
			known[row.Name] = row
		}
		if known[deviceclasses.AttributeKind].Name == "" {
			t.Errorf("%s has no kind", kind)
		}
	}
}

// Each device has the attributes of its kind, of their types, and lacks only those that it
// can lack. Each kind is published on some machine.
func TestPublishedAttributesAreThoseOfTheTable(t *testing.T) {
	all, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	devices := *object.Parse[[]resourceapi.Device](t, files.Read(t, "../driver/caches/testdata/devices.yaml"))
	sample.Each(t, func(_ *testing.T, machine numa.Machine) {
		devices = append(devices, attached.Devices(machine, all)...)
		for _, by := range deviceclasses.ZoneBys() {
			devices = append(devices, zones.Devices(&machine, zones.Settings{ZoneBy: by, Exclusivity: deviceclasses.ExclusivityKernel}, nil, nil)...)
		}
	})
	kinds := map[string]bool{}
	for _, device := range devices {
		kind := *device.Attributes[deviceclasses.AttributeKind].StringValue
		kinds[kind] = true
		left := len(device.Attributes)
		for _, row := range rowsOf(kind) {
			value, has := device.Attributes[row.Name]
			if has {
				left--
			}
			switch typed := map[deviceclasses.AttributeType]bool{
				deviceclasses.Text: value.StringValue != nil, deviceclasses.Number: value.IntValue != nil, deviceclasses.Flag: value.BoolValue != nil,
			}[row.Type]; {
			case !has && row.Absent == "":
				t.Errorf("%s lacks %s", device.Name, row.Name)
			case has && !typed, has && len(row.Words) > 0 && !slices.Contains(row.Words, *value.StringValue):
				t.Errorf("%s: %s is %v", device.Name, row.Name, value)
			}
			if row.OnlyIf != "" && has != *device.Attributes[row.OnlyIf].BoolValue {
				t.Errorf("%s has %s: %t", device.Name, row.Name, has)
			}
		}
		if left > 0 {
			t.Errorf("%s has %d attributes that are not in the table: %v", device.Name, left, device.Attributes)
		}
		for name := range device.Capacity {
			if kind == deviceclasses.KindCache && !slices.Contains(deviceclasses.CacheCapacities(), name) {
				t.Errorf("%s has the capacity %s, which is not in the list", device.Name, name)
			}
		}
	}
	if len(kinds) != len(deviceclasses.ZoneKinds())+1+len(deviceclasses.FunctionKinds()) {
		t.Errorf("only these kinds are published: %v", kinds)
	}
}

// A NodeConfig can have more keys of the NUMA node than the default.
func TestAllAttributesFitWithAllKeysOfTheNUMANode(t *testing.T) {
	for _, kind := range deviceclasses.FunctionKinds() {
		most := len(rowsOf(kind)) - len(deviceclasses.NUMANodeAttributes()) + 1 + deviceclasses.MaxNUMANodeKeys
		if most > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
			t.Errorf("%s has up to %d attributes, the API allows %d", kind, most, resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice)
		}
	}
}

func TestStringsAreCutBetweenLetters(t *testing.T) {
	long := strings.Repeat("x", resourceapi.DeviceAttributeMaxValueLength-1)
	for value, want := range map[string]string{
		"short": "short", long + "ab": long + "a", long + "é": long, long + "é!": long, "bad \xff": "bad ?", long + "é"[:1]: long + "?",
	} {
		attributes := deviceclasses.DeviceAttributes(deviceclasses.FunctionAttributes(), map[resourceapi.QualifiedName]any{
			deviceclasses.AttributeKind: deviceclasses.KindGPU, deviceclasses.AttributeModel: value,
		})
		if got := *attributes[deviceclasses.AttributeModel].StringValue; got != want {
			t.Errorf("%q is published as %q, want %q", value, got, want)
		}
	}
}
