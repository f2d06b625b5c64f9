package probe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
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
func (q *quantities) add(e allocation.Expr) {
	if e.Kind() != allocation.CallKind || e.AsCall().FunctionName() != "quantity" {
		return
	}
	switch argument := e.AsCall().Args()[0]; {
	case argument.Kind() == allocation.LiteralKind:
		text, _ := argument.AsLiteral().(allocation.String)
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
func isRead(e allocation.Expr) bool {
	for e.Kind() == allocation.SelectKind {
		e = e.AsSelect().Operand()
		if e.Kind() == allocation.CallKind && len(e.AsCall().Args()) == 2 && e.AsCall().Args()[1].Kind() == allocation.LiteralKind {
			e = e.AsCall().Args()[0] // attributes["NAME"]
		}
	}
	return e.Kind() == allocation.IdentKind && e.AsIdent() == allocation.DeviceVariable
}

func quantitiesOf(e allocation.Expr) (q quantities) {
	allocation.Visit(e, q.add)
	return q
}

// CheckQuantities returns an error if the evaluation of a selector for a device may take
// hours.
func CheckQuantities(selector *allocation.Selector) error {
	tree, err := selector.Tree()
	if err != nil {
		return err
	}
	switch q := quantitiesOf(tree.Root()); {
	case q.endless != "":
		return fmt.Errorf("to compute with quantity(%q) would take hours: want an amount that a device can have", q.endless)
	case q.made:
		return fmt.Errorf("quantity() of a text that is not written in the selector, nor an attribute of the device: to compute with it could take hours")
	}
	return nil
}
