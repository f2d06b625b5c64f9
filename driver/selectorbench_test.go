package driver

import (
	"maps"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// BenchmarkSelector evaluates the selector of the class zone.dra.numa on a zone, as the
// scheduler does for each device that it looks at. It does the same without one attribute
// or capacity, which shows what each costs, and in other ways to write the same: whether
// they would pay. docs/upstream.md has the results.
func BenchmarkSelector(b *testing.B) {
	zone := Devices(sample.Machine(b, "rig"), testConfig(), nil)[0]
	selector := object.Classes(b)["zone.dra.numa"].Spec.Selectors[0].CEL.Expression
	terms := strings.Split(selector, " && ")
	if len(terms) != 2 {
		b.Fatalf("selector %q has %d terms, want 2", selector, len(terms))
	}
	warm := compiledSelector(b, selector)
	for range 50_000 { // else what is measured first is slower, by a fifth
		if _, _, err := warm.Matches(b.Context(), allocation.NewDevice(Name, &zone)); err != nil {
			b.Fatal(err)
		}
	}
	benchmarkSelector(b, "all", selector, zone)
	benchmarkSelector(b, "terms-exchanged", terms[1]+" && "+terms[0], zone)
	benchmarkSelector(b, "only-the-driver", terms[0], zone)
	benchmarkSelector(b, "names-with-domain", selector, changed(zone, func(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) {
		for name, value := range zone.Attributes {
			delete(attributes, name)
			attributes[resourceapi.QualifiedName(deviceclasses.FullName(name))] = value
		}
	}))
	for _, name := range slices.Sorted(maps.Keys(zone.Attributes)) {
		if name != deviceclasses.AttributeKind {
			benchmarkSelector(b, "without="+string(name), selector, changed(zone, func(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) {
				delete(attributes, name)
			}))
		}
	}
	benchmarkSelector(b, "only-kind", selector, changed(zone, func(attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) {
		maps.DeleteFunc(attributes, func(name resourceapi.QualifiedName, _ resourceapi.DeviceAttribute) bool {
			return name != deviceclasses.AttributeKind
		})
	}))
	for _, name := range slices.Sorted(maps.Keys(zone.Capacity)) {
		less := zone
		less.Capacity = maps.Clone(zone.Capacity)
		delete(less.Capacity, name)
		benchmarkSelector(b, "without="+string(name), selector, less)
	}
}

// changed is the zone with other attributes.
func changed(zone resourceapi.Device, change func(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)) resourceapi.Device {
	zone.Attributes = maps.Clone(zone.Attributes)
	change(zone.Attributes)
	return zone
}

func compiledSelector(b *testing.B, expression string) *allocation.Selector {
	b.Helper()
	compiled, err := allocation.Compile(expression)
	if err != nil {
		b.Fatal(err)
	}
	return compiled
}

func benchmarkSelector(b *testing.B, name, expression string, device resourceapi.Device) {
	compiled, input := compiledSelector(b, expression), allocation.NewDevice(Name, &device)
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		measure.Loop(b, func() error {
			matches, _, err := compiled.Matches(b.Context(), input)
			if err == nil && !matches {
				b.Fatalf("%s is not true for %v", expression, device.Attributes)
			}
			return err
		})
	})
}
