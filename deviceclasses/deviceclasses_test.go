package deviceclasses

import (
	"io/fs"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	resourceapi "k8s.io/api/resource/v1"
)

// devices are as the driver publishes them, and as others do, by the class they
// belong to.
func devices() map[string]cel.Device {
	device := func(driver, kind string) cel.Device {
		return cel.Device{
			Driver:                   driver,
			AllowMultipleAllocations: ptr.To(IsZoneKind(kind)),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				resourceapi.QualifiedName(driver + "/kind"): {StringValue: &kind},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
				"cpu": {Value: resource.MustParse("4")},
			},
		}
	}
	return map[string]cel.Device{
		"zone.dra.numa":     device("dra.numa", "zone"),
		"isolated.dra.numa": device("dra.numa", "isolated"),
		"gpu.dra.numa":      device("dra.numa", "gpu"),
		"nic.dra.numa":      device("dra.numa", "nic"),
		"nvme.dra.numa":     device("dra.numa", "nvme"),
		"pci.dra.numa":      device("dra.numa", "pci"),
		"zone of another":   device("dra.cpu", "zone"),
		"gpu of another":    device("gpu.nvidia.com", "gpu"),
		"bare of another":   {Driver: "dra.net"},
	}
}

func TestEachClassSelectsOneKindOfOurDevices(t *testing.T) {
	classes, err := All()
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(Manifests, "*")
	if err != nil || len(classes) != len(files) {
		t.Fatalf("%d classes of files %v, %v", len(classes), files, err)
	}
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	for i, class := range classes {
		if class.Name+".yaml" != files[i] || class.Kind != "DeviceClass" {
			t.Errorf("file %s holds %s %s", files[i], class.Kind, class.Name)
		}
		if _, known := devices()[class.Name]; !known || len(class.Spec.Selectors) != 1 {
			t.Errorf("class %s has %d selectors and is in no row", class.Name, len(class.Spec.Selectors))
		}
		for _, selector := range class.Spec.Selectors {
			compiled := compiler.CompileCELExpression(selector.CEL.Expression, cel.Options{})
			if compiled.Error != nil {
				t.Fatal(compiled.Error)
			}
			for name, device := range devices() {
				got, _, err := compiled.DeviceMatches(t.Context(), device)
				if err != nil { // fatal to the scheduler
					t.Errorf("class %s on %s: %v", class.Name, name, err)
				}
				if want := name == class.Name; got != want {
					t.Errorf("class %s matches %s: %t, want %t", class.Name, name, got, want)
				}
			}
		}
	}
}
