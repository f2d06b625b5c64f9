package inventory

import (
	"context"
	"errors"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// Selectors evaluates the selectors of classes and requests for one inventory. Only one
// goroutine may use it.
type Selectors struct {
	cache *allocation.Cache
	said  map[string]*selection // by expression
}

// selection holds the answers of one expression.
type selection struct {
	selector *allocation.Selector
	wrong    error        // why it does not compile
	endless  error        // why it is not evaluated
	known    map[int]bool // by the number of the device

	conditions []Condition // nil if nobody has asked
}

// NewSelectors compiles expressions with the cache.
func NewSelectors(cache *allocation.Cache) *Selectors {
	return &Selectors{cache, make(map[string]*selection)}
}

func (s *Selectors) ofExpression(expression string) *selection {
	said := s.said[expression]
	if said == nil {
		said = &selection{known: make(map[int]bool)}
		if said.selector, said.wrong = s.cache.Compile(expression); said.wrong == nil {
			said.endless = probe.CheckQuantities(said.selector)
		}
		s.said[expression] = said
	}
	return said
}

// selects evaluates an expression as the allocator does. The answer for a device never
// changes, so it is computed only once.
func (s *Selectors) selects(expression string, d *Device) (bool, error) {
	said := s.ofExpression(expression)
	if said.wrong != nil {
		return false, said.wrong
	}
	if said.endless != nil {
		return false, said.endless
	}
	if matches, known := said.known[d.order]; known {
		return matches, nil
	}
	matches, _, err := said.selector.Matches(context.Background(), allocation.NewDevice(d.Slice.Spec.Driver, d.Device))
	if err != nil {
		return false, err
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
