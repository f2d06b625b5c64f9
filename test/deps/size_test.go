package deps

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unexplained is how many lines a package may have without a reason.
const unexplained = 2000

// A package that is larger has the reason in its comment.
func TestLargePackagesSayWhy(t *testing.T) {
	const reason = "It is larger than other packages because "
	for _, p := range packages(t) {
		if !p.shipped() {
			continue
		}
		lines, comment := 0, ""
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			path := filepath.Join("../..", p.folder(), name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(text, []byte("\n"))
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			comment += file.Doc.Text() + "\n"
		}
		if explained := strings.Contains(strings.Join(strings.Fields(comment), " "), reason); explained != (lines > unexplained) {
			t.Errorf("%s has %d lines, and its comment has %q: %t", p.folder(), lines, reason, explained)
		}
	}
}
