package attached

import (
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// checkNames returns an error for an attribute that no device has. An expression can
// read an attribute as a.b, a["b"], a.?b, a[?"b"] and "b" in a, where a is
// device.attributes["domain"], or a variable that cel.bind binds to it. Names that are
// computed are not checked.
func checkNames(tree allocation.Tree) error {
	c := nameCheck{tree: tree, domains: map[string]string{}}
	c.visit(tree.Root())
	return c.problem
}

// nameCheck is one walk over an expression.
type nameCheck struct {
	tree    allocation.Tree
	domains map[string]string // by variable that is bound to the attributes of a domain
	problem error             // the first one found
}

func (c *nameCheck) visit(e allocation.Expr) {
	if c.problem != nil || e == nil {
		return
	}
	if from, key, ok := lookup(e); ok {
		c.check(e, from, key)
	}
	switch e.Kind() {
	case allocation.SelectKind:
		c.visit(e.AsSelect().Operand())
	case allocation.CallKind:
		if e.AsCall().IsMemberFunction() {
			c.visit(e.AsCall().Target())
		}
		for _, argument := range e.AsCall().Args() {
			c.visit(argument)
		}
	case allocation.ListKind:
		for _, element := range e.AsList().Elements() {
			c.visit(element)
		}
	case allocation.MapKind:
		for _, entry := range e.AsMap().Entries() {
			c.visit(entry.AsMapEntry().Key())
			c.visit(entry.AsMapEntry().Value())
		}
	case allocation.ComprehensionKind:
		c.visitComprehension(e.AsComprehension())
	}
}

// visitComprehension visits cel.bind and the macros that loop.
func (c *nameCheck) visitComprehension(loop allocation.Comprehension) {
	outer, shadows := c.domains[loop.AccuVar()]
	delete(c.domains, loop.AccuVar())
	if domain, ok := c.domainOf(loop.AccuInit()); ok {
		c.domains[loop.AccuVar()] = domain
	}
	for _, part := range []allocation.Expr{loop.IterRange(), loop.AccuInit(), loop.LoopCondition(), loop.LoopStep(), loop.Result()} {
		c.visit(part)
	}
	delete(c.domains, loop.AccuVar())
	if shadows {
		c.domains[loop.AccuVar()] = outer
	}
}

// check checks one lookup of a key.
func (c *nameCheck) check(e, from allocation.Expr, key string) {
	place := c.tree.Place(e)
	switch domain, ok := c.domainOf(from); {
	case ok && !slices.Contains(domains(), domain):
		c.problem = at(place, "no device has attributes of %q, allowed are %s", domain, strings.Join(domains(), ", "))
	case isDevice(from, "capacity"):
		c.problem = at(place, "no PCI function has capacities")
	case ok && !slices.Contains(namesOf(domain), key):
		c.problem = at(place, "no device has attribute %s/%s, allowed are %s", domain, key, strings.Join(namesOf(domain), ", "))
	}
}

// domainOf returns the domain whose attributes the expression stands for. Such an
// expression is device.attributes["domain"], or a variable that is bound to it.
func (c *nameCheck) domainOf(e allocation.Expr) (domain string, ok bool) {
	if e.Kind() == allocation.IdentKind {
		domain, ok = c.domains[e.AsIdent()]
		return domain, ok
	}
	from, key, ok := lookup(e)
	return key, ok && isDevice(from, "attributes")
}

// isDevice reports whether the expression is device.field.
func isDevice(e allocation.Expr, field string) bool {
	from, key, ok := lookup(e)
	return ok && key == field && from.Kind() == allocation.IdentKind && from.AsIdent() == "device"
}

// lookup splits an expression that reads a key which is a literal.
func lookup(e allocation.Expr) (from allocation.Expr, key string, ok bool) {
	if e.Kind() == allocation.SelectKind {
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	}
	if e.Kind() != allocation.CallKind || len(e.AsCall().Args()) != 2 {
		return nil, "", false
	}
	from, literal := e.AsCall().Args()[0], e.AsCall().Args()[1]
	switch e.AsCall().FunctionName() {
	case allocation.Index, allocation.OptIndex, allocation.OptSelect:
	case allocation.In:
		from, literal = literal, from
	default:
		return nil, "", false
	}
	if literal.Kind() != allocation.LiteralKind {
		return nil, "", false
	}
	name, ok := literal.AsLiteral().(allocation.String)
	return from, string(name), ok
}

// domains returns the domains of all attributes, in the order of the table.
func domains() (all []string) {
	for _, attribute := range deviceclasses.FunctionAttributes() {
		if domain, _, _ := strings.Cut(string(deviceclasses.FullName(attribute.Name)), "/"); !slices.Contains(all, domain) {
			all = append(all, domain)
		}
	}
	return all
}

// namesOf returns the names of the attributes of a domain.
func namesOf(domain string) (names []string) {
	for _, attribute := range deviceclasses.FunctionAttributes() {
		if name, ok := strings.CutPrefix(string(deviceclasses.FullName(attribute.Name)), domain+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}
