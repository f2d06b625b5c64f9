package allocation

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Selector is an expression in CEL about a device.
type Selector struct{ compiled cel.CompilationResult }

// Compile compiles a selector, with the default features.
func Compile(expression string) (*Selector, error) {
	return newSelector(cel.GetCompiler(selecting(DefaultFeatures())).CompileCELExpression(expression, cel.Options{}))
}

func newSelector(compiled cel.CompilationResult) (*Selector, error) {
	if compiled.Error != nil {
		return nil, compiled.Error
	}
	return &Selector{compiled}, nil
}

// Cache keeps selectors that it has compiled. Several goroutines can use it at the same
// time.
type Cache struct{ compiled *cel.Cache }

// NewCache returns a cache of at most this many selectors.
func NewCache(most int, features Features) *Cache {
	return &Cache{cel.NewCache(most, selecting(features))}
}

// Compile returns the selector of the cache, or compiles it.
func (c *Cache) Compile(expression string) (*Selector, error) {
	return newSelector(c.compiled.GetOrCompile(expression))
}

// Device is a device in the form that selectors read.
type Device struct{ input cel.Device }

// NewDevice returns a device of the driver, which must not change any more.
func NewDevice(driver string, d *resourceapi.Device) Device {
	return Device{cel.Device{
		Driver: driver, AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity,
	}}
}

// Matches evaluates the selector as the allocator does, and returns what that costs in
// units of CEL.
func (s *Selector) Matches(ctx context.Context, d Device) (matches bool, cost uint64, err error) {
	matches, details, err := s.compiled.DeviceMatches(ctx, d.input)
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	return matches, cost, cel.EnhanceRuntimeError(err)
}
