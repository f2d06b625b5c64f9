// Package object has the Kubernetes objects of tests: as tests write them in YAML, as they are
// shipped with the driver, as older builds spell them, and as a hostile tenant changes them.
package object

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
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

// Snapshot reads the objects of a cluster, from texts of one or more documents each.
func Snapshot(tb testing.TB, texts ...string) *snapshot.Snapshot {
	tb.Helper()
	objects := &snapshot.Snapshot{}
	if err := objects.Read("test", strings.NewReader(strings.Join(texts, "\n---\n"))); err != nil {
		tb.Fatal(err)
	}
	return objects
}

// ClassText is a DeviceClass in YAML, with a selector.
func ClassText(name, expression string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %s}
spec: {selectors: [{cel: {expression: '%s'}}]}
---`, name, expression)
}

// SliceText is a ResourceSlice of worker-1 in YAML, the only one of its pool. The devices
// are a list.
func SliceText(driver, pool, devices string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[2]s}
spec:
  driver: %[1]s
  nodeName: worker-1
  pool: {name: %[2]s, generation: 1, resourceSliceCount: 1}
  devices: %[3]s
---`, driver, pool, devices)
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
