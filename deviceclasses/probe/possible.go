package probe

import (
	"context"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
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
		return s.budget.spent() || !slices.ContainsFunc(texts, func(text text) bool { return text.isFalse(text.ofOurs(attributes)) })
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
		return requiresOurs(text.expression) || text.isFalse(ofAny())
	})
	return p
}

// isFalse reports whether the selector is false, whatever the variables are of which
// nothing is known.
func (t *text) isFalse(variables cel.PartialActivation) bool {
	if t.endless() {
		return false
	}
	result, _, err := t.partial.ContextEval(context.Background(), variables)
	return err == nil && result == types.False
}

// ofAny are the variables for a device of which nothing is known.
func ofAny() cel.PartialActivation { return partial(nil, cel.AttributePattern(deviceVariable)) }

// ofOurs are the variables for a device of this driver of which only some attributes are
// known.
func (t *text) ofOurs(attributes map[string]any) cel.PartialActivation {
	some := func(known map[string]any) partly {
		return partly{types.NewStringInterfaceMap(t.Environment.CELTypeAdapter(), known)}
	}
	const ours = deviceclasses.DriverName
	return partial(
		map[string]any{"driver": ours, "attributes": some(map[string]any{ours: some(attributes)})},
		cel.AttributePattern(deviceVariable).QualString("allowMultipleAllocations"),
		cel.AttributePattern(deviceVariable).QualString("capacity"),
		// A pattern for one attribute, of any name, makes each map unknown that has it. So
		// an expression never sees partly as a whole.
		cel.AttributePattern(deviceVariable).QualString("attributes").QualString(ours).QualString(""),
	)
}

// deviceVariable is the only variable of a selector.
const deviceVariable = "device"

func partial(device map[string]any, unknown ...*cel.AttributePatternType) cel.PartialActivation {
	variables, err := cel.PartialVars(map[string]any{deviceVariable: device}, unknown...)
	if err != nil {
		panic(err) // impossible: PartialVars accepts such a map
	}
	return variables
}

// partly is a map of which some entries are known. All others may be there or not.
type partly struct{ traits.Mapper }

// Find implements traits.Mapper.
func (p partly) Find(key ref.Val) (ref.Val, bool) {
	if value, known := p.Mapper.Find(key); known {
		return value, true
	}
	return types.NewUnknown(0, nil), true
}

// maxProofCost limits the cost of an evaluation. There are as many as kinds of devices.
const maxProofCost = maxCost / 16

// partialOf returns the program that evaluates an expression of which some inputs are not
// known.
func partialOf(env *cel.Env, checked *cel.Ast) (cel.Program, error) {
	return env.Program(checked, cel.EvalOptions(cel.OptPartialEval), cel.CostLimit(maxProofCost))
}

// requiresOurs reports whether an expression is never true for a device of another driver:
// it is a condition on the driver, or such a condition and others.
func requiresOurs(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	arguments := e.AsCall().Args()
	switch e.AsCall().FunctionName() {
	case operators.LogicalAnd:
		return slices.ContainsFunc(arguments, requiresOurs)
	case operators.Equals:
		return isDriver(arguments[0]) && isOurName(arguments[1]) || isOurName(arguments[0]) && isDriver(arguments[1])
	}
	return false
}

func isDriver(e ast.Expr) bool {
	if e.Kind() != ast.SelectKind || e.AsSelect().IsTestOnly() || e.AsSelect().FieldName() != "driver" {
		return false
	}
	operand := e.AsSelect().Operand()
	return operand.Kind() == ast.IdentKind && operand.AsIdent() == deviceVariable
}

func isOurName(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.String(deviceclasses.DriverName)
}
