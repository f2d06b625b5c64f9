// Package object reads the Kubernetes objects that tests write in YAML, and those that
// are shipped with the driver.
package object

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Parse reads an object; a field that it does not have is an error.
func Parse[T any](tb testing.TB, text string) *T {
	tb.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		tb.Fatalf("%v in %s", err, text)
	}
	return object
}

// Classes returns the device classes that are shipped with the driver, by name.
func Classes(tb testing.TB) map[string]*resourceapi.DeviceClass {
	tb.Helper()
	all, err := deviceclasses.All()
	if err != nil {
		tb.Fatal(err)
	}
	classes := map[string]*resourceapi.DeviceClass{}
	for i := range all {
		classes[all[i].Name] = &all[i]
	}
	return classes
}
