// Package docs tests what the pages of the repository say of its tests and commands.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const root = "../.."

var (
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	declaredSpec = regexp.MustCompile(`\bIt\("([^"]+)"`)
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`")
	namedSpec    = regexp.MustCompile(`"([a-z][^"]+)"`)
)

// declared returns the names of all tests, and the texts of all specs, of the repository.
func declared(t *testing.T) (tests, specs map[string]bool) {
	t.Helper()
	tests, specs = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range declaredTest.FindAllStringSubmatch(string(text), -1) {
			tests[match[1]] = true
		}
		for _, match := range declaredSpec.FindAllStringSubmatch(string(text), -1) {
			specs[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tests) < 1000 || len(specs) < 50 {
		t.Fatalf("found only %d tests and %d specs", len(tests), len(specs))
	}
	return tests, specs
}

// pages returns the Markdown files for readers.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "demo/*/*.md", "test/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			all[strings.TrimPrefix(path, root+"/")] = files.Read(t, path)
		}
	}
	return all
}

func TestNamedTestsExist(t *testing.T) {
	tests, _ := declared(t)
	named := 0
	for page, text := range pages(t) {
		for _, match := range namedTest.FindAllStringSubmatch(text, -1) {
			named++
			if !tests[match[1]] {
				t.Errorf("%s names %s, which is no test", page, match[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("the pages name only %d tests", named)
	}
}

// Each line of these tables names a test or a spec that exists, in its last column.
func TestEveryLineHasATest(t *testing.T) {
	tests, specs := declared(t)
	for _, table := range []struct {
		page, heading string
		lines         int
	}{{"docs/security.md", "Threats", 25}, {"docs/runbooks.md", "What was tried", 7}, {"docs/upgrading.md", "Who reads what", 28}} {
		_, section, _ := strings.Cut(files.Read(t, root+"/"+table.page), "\n## "+table.heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		lines := 0
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.TrimSpace(line), "|")
			if len(cells) < 4 || strings.Contains(line, "---") || strings.Contains(" test tests tried ", cells[len(cells)-2]) {
				continue
			}
			lines++
			held := cells[len(cells)-2]
			found := 0
			for _, match := range namedTest.FindAllStringSubmatch(held, -1) {
				if tests[match[1]] {
					found++
				}
			}
			for _, match := range namedSpec.FindAllStringSubmatch(held, -1) {
				if !specs[match[1]] {
					t.Errorf("%s: there is no spec %q", table.page, match[1])
				}
				found++
			}
			if found == 0 {
				t.Errorf("%s: no test for %q", table.page, strings.TrimSpace(cells[1]))
			}
		}
		if lines < table.lines {
			t.Errorf("%s has %d lines", table.page, lines)
		}
	}
}
