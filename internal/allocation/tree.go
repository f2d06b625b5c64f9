package allocation

import (
	"fmt"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/parser"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Expr is a node of the tree of an expression.
type Expr = ast.Expr

// Comprehension is a node that loops, or that binds a variable.
type Comprehension = ast.ComprehensionExpr

// String is the value of a literal, which is a text.
type String = types.String

// Int is the value of a literal, which is a number.
type Int = types.Int

// Kinds of nodes.
const (
	CallKind          = ast.CallKind
	ComprehensionKind = ast.ComprehensionKind
	IdentKind         = ast.IdentKind
	ListKind          = ast.ListKind
	LiteralKind       = ast.LiteralKind
	MapKind           = ast.MapKind
	SelectKind        = ast.SelectKind
)

// Operators, which are functions of calls.
const (
	And         = operators.LogicalAnd
	Or          = operators.LogicalOr
	Not         = operators.LogicalNot
	Conditional = operators.Conditional
	Equals      = operators.Equals
	NotEquals   = operators.NotEquals
	In          = operators.In
	Index       = operators.Index
	OptIndex    = operators.OptIndex
	OptSelect   = operators.OptSelect
)

// DeviceVariable is the only variable of a selector.
const DeviceVariable = "device"

// Visit calls f for each node of the tree, the outer ones first.
func Visit(e Expr, f func(Expr)) { ast.PreOrderVisit(e, ast.NewExprVisitor(f)) }

// Tree is an expression whose types are right.
type Tree struct {
	environment *celgo.Env
	checked     *celgo.Ast
}

// Parse returns the tree of an expression of any type, with the default features. The error
// has the place of the first mistake.
func Parse(expression string) (Tree, error) {
	environment := cel.GetCompiler(selecting(DefaultFeatures())).CompileCELExpression("true", cel.Options{}).Environment
	checked, issues := environment.Compile(expression)
	for _, issue := range issues.Errors() {
		return Tree{}, fmt.Errorf("%s: %s", placeOf(issue.Location), issue.Message)
	}
	return Tree{environment, checked}, nil
}

// Tree returns the tree of the selector.
func (s *Selector) Tree() (Tree, error) {
	checked, issues := s.compiled.Environment.Compile(s.compiled.Expression)
	return Tree{s.compiled.Environment, checked}, issues.Err()
}

// Root returns the outermost node.
func (t Tree) Root() Expr { return t.checked.NativeRep().Expr() }

// Text writes a part of the expression again.
func (t Tree) Text(e Expr) (string, error) {
	return parser.Unparse(e, t.checked.NativeRep().SourceInfo())
}

// Place is where in an expression something stands. The first line and column are 1.
type Place struct{ Line, Column int }

// Place returns where a node of the tree begins.
func (t Tree) Place(e Expr) Place {
	return placeOf(t.checked.NativeRep().SourceInfo().GetStartLocation(e.ID()))
}

func placeOf(location common.Location) Place { return Place{location.Line(), location.Column() + 1} }

func (p Place) String() string { return fmt.Sprintf("line %d, column %d", p.Line, p.Column) }
