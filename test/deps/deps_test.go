// Package deps holds the imports of this module to the lists in rules_test.go: a new
// arrow between our packages, and a new module of somebody else's, is a decision with a
// reason. It does not look at the modules under tools, deployments/push, deployments/sbom, test/rig,
// test/monitoring, test/bench, test/kind and test/scale.
package deps

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const ours = "github.com/dra-driver-numa/dra-driver-numa"

// goPackage is what go list says of one of our packages.
type goPackage struct {
	ImportPath   string
	GoFiles      []string
	CgoFiles     []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// folder is the package's path in this repository, "." for the top.
func (p goPackage) folder() string {
	if p.ImportPath == ours {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, ours+"/")
}

func (p goPackage) shipped() bool {
	return !within(p.folder(), "test")
}

// within says whether path is root or below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "CGO_ENABLED=1") // all of our packages, numa-nvml as well
	output, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s: %v\n%s", command, err, exit.Stderr)
		}
		t.Fatal(err)
	}
	return string(output)
}

func packages(t *testing.T) (list []goPackage) {
	t.Helper()
	output := goList(t, "-json=ImportPath,GoFiles,CgoFiles,Imports,TestImports,XTestImports", "./...")
	for decoder := json.NewDecoder(strings.NewReader(output)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func TestOurImportsAreTheListedArrows(t *testing.T) {
	used := map[arrow]bool{}
	for _, p := range packages(t) {
		if !p.shipped() {
			continue // test may import anything
		}
		for _, path := range p.Imports {
			to, isOurs := strings.CutPrefix(path, ours+"/")
			if !isOurs {
				continue
			}
			i := slices.IndexFunc(arrows, func(a arrow) bool { return a.from == p.folder() && a.to == to })
			if i < 0 {
				t.Errorf("%s imports %s: no listed arrow", p.folder(), to)
				continue
			}
			used[arrows[i]] = true
		}
	}
	for _, a := range arrows {
		if !used[a] {
			t.Errorf("arrow %s to %s is listed, and no import needs it", a.from, a.to)
		}
		if a.why == "" {
			t.Errorf("arrow %s to %s has no reason", a.from, a.to)
		}
	}
}

func TestOtherModulesAreTheListedOnes(t *testing.T) {
	used := map[string]bool{}
	check := func(folder, path string) {
		m, found := moduleOf(path)
		if !found {
			t.Errorf("%s imports %s: no listed module", folder, path)
			return
		}
		used[m.path] = true
		if !slices.ContainsFunc(m.folders, func(root string) bool { return within(folder, root) }) {
			t.Errorf("%s imports %s: only %s may", folder, path, strings.Join(m.folders, ", "))
		}
	}
	for _, p := range packages(t) {
		for _, path := range foreign(p.Imports) {
			check(p.folder(), path)
		}
		for _, path := range foreign(slices.Concat(p.TestImports, p.XTestImports)) {
			check("test", path)
		}
	}
	for _, m := range modules {
		if !used[m.path] {
			t.Errorf("module %s is listed, and nothing imports it", m.path)
		}
		if m.why == "" {
			t.Errorf("module %s has no reason", m.path)
		}
	}
}

// foreign returns the import paths that are neither ours nor the standard
// library's: those have a dot in their first element.
func foreign(paths []string) (list []string) {
	for _, path := range paths {
		first, _, _ := strings.Cut(path, "/")
		if strings.Contains(first, ".") && !within(path, ours) {
			list = append(list, path)
		}
	}
	return list
}

// moduleOf returns the listed module with the longest path that holds the package.
func moduleOf(path string) (best module, found bool) {
	for _, m := range modules {
		if within(path, m.path) && len(m.path) > len(best.path) {
			best, found = m, true
		}
	}
	return best, found
}

func TestHookIsStandardLibraryAndCpuset(t *testing.T) {
	output := goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/numa-pin")
	var got []string
	for _, path := range strings.Fields(output) {
		got = append(got, strings.TrimPrefix(path, ours+"/"))
	}
	slices.Sort(got)
	if !slices.Equal(got, hookImports) {
		t.Errorf("numa-pin is made of %q, want %q", got, hookImports)
	}
}

// docs/architecture.md lists what hook and keeper import.
func TestArchitectureListsTheImportsOfTheHook(t *testing.T) {
	page, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(page), "\n| `cdi/pin` |")
	_, row, _ = strings.Cut(row, "It imports only ")
	row, _, _ = strings.Cut(row, " and the standard library")
	var want []string
	for _, a := range arrows {
		if a.from == "cdi/pin" {
			want = append(want, "`"+a.to+"`")
		}
	}
	slices.Sort(want)
	got := strings.Split(row, ", ")
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the page has %q, want %q", got, want)
	}
}
