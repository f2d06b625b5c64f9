package deps

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a Driver may have. It is the only type that everything passes through, so it grows
// unless something stops it: what needs no lock belongs to ledger, tuning, dividing or the
// planner.
const (
	mostMethods = 80 // of *Driver, with the functions that take one
	mostFields  = 22
	mostLines   = 400 // of a file
)

func TestDriverStaysSmall(t *testing.T) {
	methods, fields := 0, 0
	for _, file := range shippedFiles(t, "../../driver") {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if takesDriver(n.Recv) || takesDriver(n.Type.Params) {
					methods++
				}
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					if call, is := method.Type.(*ast.FuncType); is && takesDriver(call.Params) {
						methods++
					}
				}
			case *ast.TypeSpec:
				if record, is := n.Type.(*ast.StructType); is && n.Name.Name == "Driver" {
					for _, field := range record.Fields.List {
						if len(field.Names) == 0 {
							t.Error("Driver embeds a type, whose methods and fields are then its own")
						}
						fields += len(field.Names)
					}
				}
			}
			return true
		})
	}
	if methods == 0 || fields == 0 {
		t.Fatalf("%d methods and %d fields: this test sees nothing", methods, fields)
	}
	if methods > mostMethods || fields > mostFields {
		t.Errorf("Driver has %d methods and %d fields, want at most %d and %d", methods, fields, mostMethods, mostFields)
	}
}

// takesDriver reports whether a parameter or the receiver is a *Driver.
func takesDriver(list *ast.FieldList) bool {
	if list == nil {
		return false
	}
	for _, field := range list.List {
		if pointer, is := field.Type.(*ast.StarExpr); is {
			if name, is := pointer.X.(*ast.Ident); is && name.Name == "Driver" {
				return true
			}
		}
	}
	return false
}

// The state of the rooms below Driver is theirs: nobody else writes it.
func TestStateBelowDriverHasNoExportedFields(t *testing.T) {
	for _, folder := range []string{"../../driver/tuning", "../../driver/dividing"} {
		seen := false
		for _, file := range shippedFiles(t, folder) {
			ast.Inspect(file, func(n ast.Node) bool {
				spec, is := n.(*ast.TypeSpec)
				if !is || spec.Name.Name != "State" {
					return true
				}
				seen = true
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					for _, name := range field.Names {
						if name.IsExported() {
							t.Errorf("%s: State exports %s", folder, name)
						}
					}
				}
				return false
			})
		}
		if !seen {
			t.Errorf("%s has no type State, so this test sees nothing", folder)
		}
	}
}

// shippedFiles parses the files of a folder that are no tests. Each is short enough to be
// read at once.
func shippedFiles(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines > mostLines {
			t.Errorf("%s has %d lines, want at most %d", path, lines, mostLines)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
