package probe

import (
	"fmt"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Endless is a quantity with which a selector computes for hours, such as
// quantity("1e300000000"). Neither CEL's cost nor a context ends that.
type Endless struct {
	Index int // as in Missing
	Text  string
}

// quantities is what a selector makes quantities of.
type quantities struct {
	endless string // the first literal with which nothing can be computed
	read    bool   // values of the device
	made    bool   // texts that the selector itself makes
}

// add looks at one node of an expression.
func (q *quantities) add(e ast.Expr) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "quantity" {
		return
	}
	switch argument := e.AsCall().Args()[0]; {
	case argument.Kind() == ast.LiteralKind:
		text, _ := argument.AsLiteral().(types.String)
		amount, err := resource.ParseQuantity(string(text))
		if err == nil && !spelling.Countable(amount) && q.endless == "" {
			q.endless = string(text)
		}
	case isRead(argument):
		q.read = true
	default:
		q.made = true
	}
}

// isRead reports whether an expression is a field of the device.
func isRead(e ast.Expr) bool {
	for e.Kind() == ast.SelectKind {
		e = e.AsSelect().Operand()
		if e.Kind() == ast.CallKind && len(e.AsCall().Args()) == 2 && e.AsCall().Args()[1].Kind() == ast.LiteralKind {
			e = e.AsCall().Args()[0] // attributes["NAME"]
		}
	}
	return e.Kind() == ast.IdentKind && e.AsIdent() == deviceVariable
}

func quantitiesOf(e ast.Expr) (q quantities) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(q.add))
	return q
}

// CheckQuantities returns an error if the evaluation of a selector for a device may take
// hours.
func CheckQuantities(compiled cel.CompilationResult) error {
	checked, issues := compiled.Environment.Compile(compiled.Expression)
	if err := issues.Err(); err != nil {
		return err
	}
	switch q := quantitiesOf(checked.NativeRep().Expr()); {
	case q.endless != "":
		return fmt.Errorf("to compute with quantity(%q) would take hours: want an amount that a device can have", q.endless)
	case q.made:
		return fmt.Errorf("quantity() of a text that is not written in the selector, nor an attribute of the device: to compute with it could take hours")
	}
	return nil
}
