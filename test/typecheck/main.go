// Command typecheck checks the types of packages, and of all that they import, for other
// systems. It compiles nothing: that takes minutes without a build cache.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

// mode is what type-checking all packages from their source needs.
const mode = packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
	packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck PACKAGE GOOS...")
		os.Exit(2)
	}
	for _, system := range os.Args[2:] {
		if err := check(os.Args[1], system); err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: error: check %s for %s: %v\n", os.Args[1], system, err)
			os.Exit(1)
		}
	}
}

func check(path, system string) error {
	read, err := packages.Load(&packages.Config{Mode: mode, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")}, path)
	if err != nil {
		return err
	}
	if count := packages.PrintErrors(read); count > 0 {
		return fmt.Errorf("%d errors", count)
	}
	return nil
}
