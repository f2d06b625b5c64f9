package deviceclasses

import (
	"io/fs"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// published is a device, and the classes that select it.
type published struct {
	driver string
	resourceapi.Device
	classes []string
}

// devices are as the driver publishes them, and as others do.
func devices() map[string]published {
	device := func(driver, kind string, classes ...string) published {
		return published{driver, resourceapi.Device{
			AllowMultipleAllocations: ptr.To(IsZoneKind(kind) || kind == KindCache),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				AttributeKind: {StringValue: &kind},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
				"cpu": {Value: resource.MustParse("4")},
			},
		}, classes}
	}
	pool := func(name, class string) published {
		cache := device("dra.numa", "cache", "cache.dra.numa", class)
		cache.Attributes[AttributePool] = resourceapi.DeviceAttribute{StringValue: &name}
		return cache
	}
	return map[string]published{
		"zone":             device("dra.numa", "zone", "zone.dra.numa", "bound.dra.numa", "performance.dra.numa", "quiet.dra.numa", "powersave.dra.numa"),
		"isolated":         device("dra.numa", "isolated", "isolated.dra.numa"),
		"gpu":              device("dra.numa", "gpu", "gpu.dra.numa"),
		"nic":              device("dra.numa", "nic", "nic.dra.numa"),
		"nvme":             device("dra.numa", "nvme", "nvme.dra.numa"),
		"pci":              device("dra.numa", "pci", "pci.dra.numa"),
		"guaranteed":       pool(PoolGuaranteed, "gold.dra.numa"),
		"besteffort":       pool(PoolBestEffort, "silver.dra.numa"),
		"shared":           pool(PoolShared, "bronze.dra.numa"),
		"zone of another":  device("dra.cpu", "zone"),
		"cache of another": device("dra.cpu", "cache"),
		"gpu of another":   device("gpu.nvidia.com", "gpu"),
		"bare of another":  {driver: "dra.net"},
	}
}

func TestClassesSelectOurDevicesByKindAndPool(t *testing.T) {
	classes, err := All()
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(Manifests, "*")
	if err != nil || len(classes) != len(files) {
		t.Fatalf("%d classes of files %v, %v", len(classes), files, err)
	}
	expressions := map[string]string{}
	for i, class := range classes {
		if class.Name+".yaml" != files[i] || class.Kind != "DeviceClass" {
			t.Errorf("file %s holds %s %s", files[i], class.Kind, class.Name)
		}
		if len(class.Spec.Selectors) != 1 {
			t.Fatalf("class %s has %d selectors", class.Name, len(class.Spec.Selectors))
		}
		expressions[class.Name] = class.Spec.Selectors[0].CEL.Expression
		selector, err := allocation.Compile(expressions[class.Name])
		if err != nil {
			t.Fatal(err)
		}
		selects := false
		for name, device := range devices() {
			got, _, err := selector.Matches(t.Context(), allocation.NewDevice(device.driver, &device.Device))
			if err != nil { // fatal to the scheduler
				t.Errorf("class %s on %s: %v", class.Name, name, err)
			}
			if want := slices.Contains(device.classes, class.Name); got != want {
				t.Errorf("class %s matches %s: %t, want %t", class.Name, name, got, want)
			}
			selects = selects || got
		}
		if !selects {
			t.Errorf("class %s is in no row", class.Name)
		}
	}
	for _, name := range devices()["zone"].classes { // the scheduler caches few compiled expressions
		if expressions[name] != expressions["zone.dra.numa"] {
			t.Errorf("class %s has the selector %q, unlike zone.dra.numa", name, expressions[name])
		}
	}
}

func TestConfigurationsOfClassesAreDecoded(t *testing.T) {
	classes, err := All()
	if err != nil {
		t.Fatal(err)
	}
	tuned, policies := map[string]bool{}, map[string]string{}
	for _, class := range classes {
		for _, config := range class.Spec.Config {
			decoded, err := RequestConfig{}.DecodeOver(config.Opaque.Parameters.Raw)
			if err != nil || config.Opaque.Driver != DriverName {
				t.Errorf("class %s for driver %s: %v", class.Name, config.Opaque.Driver, err)
			}
			tuned[class.Name] = !decoded.Performance.IsZero()
			policies[class.Name] = decoded.Zone.MemoryPolicy
		}
	}
	for _, name := range []string{"performance.dra.numa", "quiet.dra.numa", "powersave.dra.numa"} {
		if !tuned[name] {
			t.Errorf("class %s changes nothing", name)
		}
	}
	if got := policies["bound.dra.numa"]; got != MemoryBind {
		t.Errorf("memory policy of class bound.dra.numa: %q", got)
	}
}
