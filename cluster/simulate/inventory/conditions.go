package inventory

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// Condition is one of the conditions that a selector joins with AND. A device must meet
// all of them.
type Condition struct {
	Text string
	// Reads is what the condition reads of a device, in the order of the text.
	Reads []Reading
	// Equals is the text with which the condition compares the only thing that it reads, or
	// "" if it does something else.
	Equals string
}

// Reading is an attribute, a capacity or the driver of a device.
type Reading struct {
	// Name is the full name of an attribute or capacity, and "" for the driver.
	Name     resourceapi.FullyQualifiedName
	Capacity bool
}

// Conditions returns the conditions of all selectors. It leaves out those of a selector
// that does not compile, or whose text cannot be written again.
func (s *Selectors) Conditions(selectors []resourceapi.DeviceSelector) (all []Condition) {
	for _, selector := range selectors {
		if selector.CEL != nil {
			all = append(all, s.conditionsOf(selector.CEL.Expression)...)
		}
	}
	return all
}

func (s *Selectors) conditionsOf(expression string) []Condition {
	said := s.ofExpression(expression)
	if said.wrong != nil || said.conditions != nil {
		return said.conditions
	}
	said.conditions = []Condition{}
	tree, err := said.selector.Tree()
	if err != nil { // impossible: it has been compiled
		return nil
	}
	for _, part := range joined(tree.Root()) {
		text, err := tree.Text(part)
		if err != nil {
			continue
		}
		condition := Condition{Text: text}
		allocation.Visit(part, condition.read)
		condition.Equals = equals(part)
		said.conditions = append(said.conditions, condition)
	}
	return said.conditions
}

// joined returns the parts of an expression that are joined with AND.
func joined(e allocation.Expr) []allocation.Expr {
	if e.Kind() != allocation.CallKind || e.AsCall().FunctionName() != allocation.And {
		return []allocation.Expr{e}
	}
	var parts []allocation.Expr
	for _, argument := range e.AsCall().Args() {
		parts = append(parts, joined(argument)...)
	}
	return parts
}

// equals returns the text of READ == "text", in either order.
func equals(e allocation.Expr) string {
	if e.Kind() != allocation.CallKind || e.AsCall().FunctionName() != allocation.Equals {
		return ""
	}
	sides := e.AsCall().Args()
	for i, side := range sides {
		if _, is := readingOf(sides[1-i]); is && side.Kind() == allocation.LiteralKind {
			text, _ := side.AsLiteral().(allocation.String)
			return string(text)
		}
	}
	return ""
}

func (c *Condition) read(e allocation.Expr) {
	if reading, is := readingOf(e); is {
		c.Reads = append(c.Reads, reading)
	}
}

// readingOf recognizes device.driver, device.attributes["domain"].name and
// device.capacity["domain"].name, also with optional syntax.
func readingOf(e allocation.Expr) (r Reading, is bool) {
	inner, field := selected(e)
	if isDevice(inner) && field == "driver" {
		return Reading{}, true
	}
	lists, domain := selected(inner)
	device, list := selected(lists)
	if domain == "" || field == "" || !isDevice(device) || list != "attributes" && list != "capacity" {
		return Reading{}, false
	}
	return Reading{resourceapi.FullyQualifiedName(domain + "/" + field), list == "capacity"}, true
}

// selected returns the operand and the name of x.name, x["name"], x.?name and x[?"name"].
func selected(e allocation.Expr) (operand allocation.Expr, name string) {
	if e == nil {
		return nil, ""
	}
	switch e.Kind() {
	case allocation.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName()
	case allocation.CallKind:
		switch e.AsCall().FunctionName() {
		case allocation.Index, allocation.OptIndex, allocation.OptSelect:
			if key := e.AsCall().Args()[1]; key.Kind() == allocation.LiteralKind {
				text, _ := key.AsLiteral().(allocation.String)
				return e.AsCall().Args()[0], string(text)
			}
		}
	}
	return nil, ""
}

func isDevice(e allocation.Expr) bool {
	return e != nil && e.Kind() == allocation.IdentKind && e.AsIdent() == allocation.DeviceVariable
}

// Meets reports whether the device meets the condition. A condition that fails with an
// error is not met.
func (s *Selectors) Meets(c Condition, d *Device) bool {
	matches, err := s.selects(c.Text, d)
	return err == nil && matches
}
