package vocabulary

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// common are words of the vocabulary that also mean something else: a field, a flag, a
// word of the kernel or of Kubernetes. Code may type them.
var common = []string{
	"any", "bandwidth", "blocked", "cache", "claim", "class", "classes", "container", "distribute", "driver", "exclusivity", "group", "hugepages", "isolated", "kernel", "kind",
	"l3", "machine", "namespaces", "none", "pack", "performance", "pod", "pool", "prefer", "Ready", "root", "shared", "socket", "spread", "ways", "zone",
}

// words returns the words that mean only one thing: all constants of package
// deviceclasses that are not common, the names of attributes with and without their domain,
// their values that are words of package numa: kinds, core types and pools, and the reasons of
// conditions and events of faults.
func words(t *testing.T) (list []string) {
	t.Helper()
	texts := slices.Collect(maps.Values(constants(t, "../../deviceclasses")))
	for _, attribute := range deviceclasses.Attributes() {
		texts = append(texts, string(attribute.Name), string(deviceclasses.FullName(attribute.Name)))
	}
	for _, fault := range deviceclasses.Faults() {
		texts = append(texts, fault.Reason, fault.Event, fault.EventOver)
	}
	texts = slices.Concat(texts, deviceclasses.FunctionKinds(), deviceclasses.CoreTypes(), deviceclasses.ClaimPools())
	for _, word := range common {
		if !slices.Contains(texts, word) {
			t.Errorf("%q is listed as a common word, but there is no such word", word)
		}
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" || slices.Contains(common, text) })
}

// constants returns the texts of the exported constants in the files of a folder, by name.
// It leaves out those that are constants of other packages.
func constants(t *testing.T, folder string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]ast.Expr{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			declared, ok := decl.(*ast.GenDecl)
			if !ok || declared.Tok != token.CONST {
				continue
			}
			for _, spec := range declared.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, value := range spec.Values {
					values[spec.Names[i].Name] = value
				}
			}
		}
	}
	texts := map[string]string{}
	for name, value := range values {
		if text, ok := textOf(value, values); ok && ast.IsExported(name) {
			texts[name] = text
		}
	}
	return texts
}

// textOf returns the text that a constant expression stands for: a literal, a constant or
// a sum of both.
func textOf(value ast.Expr, constants map[string]ast.Expr) (text string, ok bool) {
	switch value := value.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(value.Value)
		return text, err == nil && value.Kind == token.STRING
	case *ast.Ident:
		if constant := constants[value.Name]; constant != nil {
			return textOf(constant, constants)
		}
	case *ast.BinaryExpr:
		left, leftOK := textOf(value.X, constants)
		right, rightOK := textOf(value.Y, constants)
		return left + right, leftOK && rightOK
	}
	return "", false
}
