package probe

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// Possible says which devices selectors can select: all of which there is no proof that
// they cannot.
type Possible struct {
	Zones bool
	// Pools are the pools of caches.
	Pools     []string
	Functions bool // PCI functions
	Foreign   bool // devices of other drivers
}

// anything excludes nothing.
func anything() Possible { return Possible{true, deviceclasses.ClaimPools(), true, true} }

// Nothing reports that no device can be selected.
func (p Possible) Nothing() bool {
	return !p.Zones && len(p.Pools) == 0 && !p.Functions && !p.Foreign
}

// OnlyZones reports that nothing but zones can be selected.
func (p Possible) OnlyZones() bool {
	return p.Zones && len(p.Pools) == 0 && !p.Functions && !p.Foreign
}

// OnlyCaches reports that nothing but pools of caches can be selected.
func (p Possible) OnlyCaches() bool {
	return !p.Zones && len(p.Pools) > 0 && !p.Functions && !p.Foreign
}

// having leaves out the devices that lack the capacities. The allocator gives a request
// only devices that have all of them.
func (p Possible) having(asked Capacities) Possible {
	if len(asked) == 0 {
		return p
	}
	p.Functions = false
	if p.Zones && len(p.Pools) > 0 { // else the capacities are a mistake
		if p.Zones = !asksCaches(asked); p.Zones {
			p.Pools = nil
		}
	}
	return p
}

// Possible says what a request with these selectors can get, those of its class first, and
// with these capacities. If a selector does not compile, everything is possible, and it
// returns an error.
func (s *Selectors) Possible(class, own []resourceapi.DeviceSelector, asked Capacities) (Possible, error) {
	if s.budget.spent() {
		return anything(), nil // before the texts are even joined
	}
	key := keyOf(class, own)
	if !s.budget.pay(key, len(class)+len(own)) {
		return anything(), nil
	}
	if known, ok := s.possible.Get(key); ok {
		return known.(Possible).having(asked), nil
	}
	texts, err := s.compile(class, own)
	possible := s.possibleOf(texts)
	switch {
	case s.budget.spent():
		return anything(), nil
	case err != nil:
		return anything(), err
	}
	s.possible.Add(key, possible)
	return possible.having(asked), nil
}

func (s *Selectors) possibleOf(texts []text) (p Possible) {
	may := func(attributes map[string]any) bool {
		return s.budget.spent() || !slices.ContainsFunc(texts, func(text text) bool {
			return text.isFalse(allocation.Known{Driver: deviceclasses.DriverName, Attributes: attributes})
		})
	}
	const kindOf, poolOf = string(deviceclasses.AttributeKind), string(deviceclasses.AttributePool)
	for _, kind := range deviceclasses.ZoneKinds() {
		p.Zones = p.Zones || may(map[string]any{kindOf: kind})
	}
	for _, pool := range deviceclasses.ClaimPools() {
		if may(map[string]any{kindOf: deviceclasses.KindCache, poolOf: pool}) {
			p.Pools = append(p.Pools, pool)
		}
	}
	for _, kind := range deviceclasses.FunctionKinds() {
		p.Functions = p.Functions || may(map[string]any{kindOf: kind})
	}
	p.Foreign = !slices.ContainsFunc(texts, func(text text) bool {
		return requiresOurs(text.expression) || text.isFalse(allocation.Known{})
	})
	return p
}

// isFalse reports whether the selector is false, whatever the device has of which nothing
// is known.
func (t *text) isFalse(known allocation.Known) bool {
	return !t.endless() && t.partial.IsFalse(known)
}

// maxProofCost limits the cost of an evaluation. There are as many as kinds of devices.
const maxProofCost = maxCost / 16

// requiresOurs reports whether an expression is never true for a device of another driver:
// it is a condition on the driver, or such a condition and others.
func requiresOurs(e allocation.Expr) bool {
	if e.Kind() != allocation.CallKind {
		return false
	}
	arguments := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case allocation.And:
		return slices.ContainsFunc(arguments, requiresOurs)
	case allocation.Equals:
		return isDriver(arguments[0]) && isOurName(arguments[1]) || isOurName(arguments[0]) && isDriver(arguments[1])
	}
	return false
}

func isDriver(e allocation.Expr) bool {
	if e.Kind() != allocation.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().FieldName() != "driver" {
		return false
	}
	operand := e.AsSelect().Operand()
	return operand.Kind() == allocation.IdentKind && operand.AsIdent() == allocation.DeviceVariable
}

func isOurName(e allocation.Expr) bool {
	return e.Kind() == allocation.LiteralKind && e.AsLiteral() == allocation.String(deviceclasses.DriverName)
}
