package inventory

import (
	"context"
	"errors"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
)

// Selectors evaluates the selectors of classes and requests for one inventory. Only one
// goroutine may use it.
type Selectors struct {
	cache *cel.Cache
	said  map[string]*selection // by expression
}

// selection holds the answers of one expression.
type selection struct {
	compiled cel.CompilationResult
	endless  error        // why it is not evaluated
	known    map[int]bool // by the number of the device

	conditions []Condition // nil if nobody has asked
}

// NewSelectors compiles expressions with the cache.
func NewSelectors(cache *cel.Cache) *Selectors {
	return &Selectors{cache, make(map[string]*selection)}
}

func (s *Selectors) ofExpression(expression string) *selection {
	said := s.said[expression]
	if said == nil {
		said = &selection{compiled: s.cache.GetOrCompile(expression), known: make(map[int]bool)}
		if said.compiled.Error == nil {
			said.endless = probe.CheckQuantities(said.compiled)
		}
		s.said[expression] = said
	}
	return said
}

// selects evaluates an expression as the allocator does. The answer for a device never
// changes, so it is computed only once.
func (s *Selectors) selects(expression string, d *Device) (bool, error) {
	said := s.ofExpression(expression)
	if said.compiled.Error != nil {
		return false, said.compiled.Error
	}
	if said.endless != nil {
		return false, said.endless
	}
	if matches, known := said.known[d.order]; known {
		return matches, nil
	}
	matches, _, err := said.compiled.DeviceMatches(context.Background(), cel.Device{
		Driver:                   d.Slice.Spec.Driver,
		AllowMultipleAllocations: d.AllowMultipleAllocations,
		Attributes:               d.Attributes,
		Capacity:                 d.Capacity,
	})
	if err != nil {
		return false, cel.EnhanceRuntimeError(err)
	}
	said.known[d.order] = matches
	return matches, nil
}

// Endless returns an error if the evaluation of a selector may take hours.
func (s *Selectors) Endless(selectors []resourceapi.DeviceSelector) error {
	for _, selector := range selectors {
		if selector.CEL == nil {
			continue
		}
		if err := s.ofExpression(selector.CEL.Expression).endless; err != nil {
			return err
		}
	}
	return nil
}

// errNoExpression is the error for a kind of selector that this version does not know.
var errNoExpression = errors.New("selector without a CEL expression")

// All reports whether the device passes all selectors. If it returns an error, the
// allocator fails.
func (s *Selectors) All(selectors []resourceapi.DeviceSelector, d *Device) (bool, error) {
	for _, selector := range selectors {
		if selector.CEL == nil {
			return false, errNoExpression
		}
	}
	for _, selector := range selectors {
		if matches, err := s.selects(selector.CEL.Expression, d); err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}
