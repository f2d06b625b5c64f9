package allocation

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Partial evaluates a selector for devices of which only some is known.
type Partial struct {
	environment *celgo.Env
	program     celgo.Program
}

// Known is what is known of a device. If Driver is "", that is nothing.
type Known struct {
	Driver     string
	Attributes map[string]any // in the driver's domain; there may be more
}

// Partial returns the selector as a Partial. An evaluation that costs more than that has no
// result.
func (t Tree) Partial(mostCost uint64) (*Partial, error) {
	program, err := t.environment.Program(t.checked, celgo.EvalOptions(celgo.OptPartialEval), celgo.CostLimit(mostCost))
	return &Partial{t.environment, program}, err
}

// IsFalse reports whether the selector is false, whatever the device has of which nothing
// is known.
func (p *Partial) IsFalse(known Known) bool {
	result, _, err := p.program.ContextEval(context.Background(), p.variables(known))
	return err == nil && result == types.False
}

func (p *Partial) variables(known Known) celgo.PartialActivation {
	if known.Driver == "" {
		return activation(nil, celgo.AttributePattern(DeviceVariable))
	}
	some := func(known map[string]any) partly {
		return partly{types.NewStringInterfaceMap(p.environment.CELTypeAdapter(), known)}
	}
	return activation(
		map[string]any{"driver": known.Driver, "attributes": some(map[string]any{known.Driver: some(known.Attributes)})},
		celgo.AttributePattern(DeviceVariable).QualString("allowMultipleAllocations"),
		celgo.AttributePattern(DeviceVariable).QualString("capacity"),
		// A pattern for one attribute, of any name, makes each map unknown that has it. So
		// an expression never sees partly as a whole.
		celgo.AttributePattern(DeviceVariable).QualString("attributes").QualString(known.Driver).QualString(""),
	)
}

func activation(device map[string]any, unknown ...*celgo.AttributePatternType) celgo.PartialActivation {
	variables, err := celgo.PartialVars(map[string]any{DeviceVariable: device}, unknown...)
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
