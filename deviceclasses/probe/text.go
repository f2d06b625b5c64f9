package probe

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// text is a selector, and what its conditions compare.
type text struct {
	*allocation.Selector
	own        int // index among the own selectors; negative for one of the class
	expression allocation.Expr
	partial    *allocation.Partial // evaluates it while some inputs are not known
	conditions []condition
	quantities quantities
}

// condition is a part of a selector without AND, OR and NOT.
type condition struct {
	names   []string // of fields and keys
	words   []string // all strings
	numbers []int64
	// compares reports that values are only compared with literals. Else some computation
	// decides, and a literal is not the only value of interest.
	compares bool
}

func newText(selector *allocation.Selector) (text, error) {
	tree, err := selector.Tree()
	if err != nil { // impossible: it has been compiled
		return text{}, err
	}
	partial, err := tree.Partial(maxProofCost)
	if err != nil {
		return text{}, err
	}
	t := text{Selector: selector, expression: tree.Root(), partial: partial}
	t.split(t.expression)
	t.quantities = quantitiesOf(t.expression)
	return t, nil
}

// endless reports whether its evaluation might take hours, for a device that is made up.
func (t *text) endless() bool {
	return t.quantities.endless != "" || t.quantities.read || t.quantities.made
}

// split adds the conditions of an expression.
func (t *text) split(e allocation.Expr) {
	if e.Kind() == allocation.CallKind {
		switch e.AsCall().FunctionName() {
		case allocation.And, allocation.Or, allocation.Not, allocation.Conditional:
			for _, argument := range e.AsCall().Args() {
				t.split(argument)
			}
			return
		}
	}
	c := condition{compares: true}
	allocation.Visit(e, c.add)
	t.conditions = append(t.conditions, c)
}

// add adds what one node of an expression has.
func (c *condition) add(e allocation.Expr) {
	switch e.Kind() {
	case allocation.SelectKind:
		c.names = append(c.names, e.AsSelect().FieldName())
	case allocation.LiteralKind:
		switch value := e.AsLiteral().(type) {
		case allocation.String:
			c.words = append(c.words, string(value))
		case allocation.Int:
			c.numbers = append(c.numbers, int64(value))
		}
	case allocation.CallKind:
		switch e.AsCall().FunctionName() {
		case allocation.Index, allocation.OptIndex, allocation.OptSelect:
			if key := e.AsCall().Args()[1]; key.Kind() == allocation.LiteralKind {
				name, _ := key.AsLiteral().(allocation.String)
				c.names = append(c.names, string(name))
			}
		case allocation.Equals, allocation.NotEquals, allocation.In, "orValue":
		default:
			c.compares = false
		}
	case allocation.ComprehensionKind:
		c.compares = false
	}
}

// has reports whether the condition can read the attribute or capacity. A name that is
// not a key may be one that a macro looks for.
func (c *condition) has(id string) bool {
	return slices.Contains(c.names, id) || slices.Contains(c.words, id)
}

// reads reports whether the selector can read the attribute or capacity.
func (t *text) reads(id string) bool {
	return slices.ContainsFunc(t.conditions, func(c condition) bool { return c.has(id) })
}

// unknownPool finds a text in the own selectors that is compared with the pool of a cache.
func unknownPool(texts []text) *UnknownPool {
	for _, text := range texts {
		for _, c := range text.conditions {
			if text.own < 0 || !slices.Contains(c.names, idOf(deviceclasses.AttributePool)) {
				continue
			}
			for _, word := range c.words {
				if word != "" && !slices.Contains(c.names, word) && !slices.Contains(deviceclasses.ClaimPools(), word) {
					return &UnknownPool{text.own, word}
				}
			}
		}
	}
	return nil
}

// literals are those in the conditions that read an attribute or capacity.
type literals struct {
	words   []string
	numbers []int64
	decide  bool // no other value makes a difference, except any that is none of them
}

func literalsFor(texts []text, id string) literals {
	all := literals{decide: true}
	for _, text := range texts {
		for _, c := range text.conditions {
			if !c.has(id) {
				continue
			}
			for _, word := range c.words {
				if word != "" && !slices.Contains(c.names, word) {
					all.words = append(all.words, word)
				}
			}
			all.numbers = append(all.numbers, c.numbers...)
			all.decide = all.decide && c.compares
		}
	}
	return all
}
