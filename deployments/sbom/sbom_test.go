package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// built builds this command, whose modules are known.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sbom")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// written returns the text of the document, and what the library of SPDX reads of it.
func written(t *testing.T, zone *time.Location, programs ...string) ([]byte, *spdx.Document) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.spdx.json")
	if err := run(options{version: "v1.2.3", created: time.Unix(1e9, 0).In(zone)}, out, programs); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Fatal(err)
	}
	return text, doc
}

func TestDocumentNamesTheModulesOfAProgram(t *testing.T) {
	_, doc := written(t, time.UTC, built(t))
	if doc.SPDXVersion != "SPDX-2.3" || doc.CreationInfo.Created != "2001-09-09T01:46:40Z" {
		t.Errorf("the document is of %s and %s", doc.SPDXVersion, doc.CreationInfo.Created)
	}
	packages := map[string]*spdx.Package{}
	for _, p := range doc.Packages {
		packages[p.PackageName] = p
		if !regexp.MustCompile(`^[A-Za-z0-9.-]+$`).MatchString(string(p.PackageSPDXIdentifier)) || p.PackageDownloadLocation == "" || p.FilesAnalyzed {
			t.Errorf("package %+v", p)
		}
	}
	const module, name = "github.com/spdx/tools-golang", "sbom for "
	platform := runtime.GOOS + "/" + runtime.GOARCH
	var relations []string
	for _, r := range doc.Relationships {
		relations = append(relations, r.Relationship+" "+string(r.RefB.ElementRefID))
	}
	for _, want := range []string{"dra-driver-numa", name + platform, module, "stdlib"} {
		p := packages[want]
		if p == nil {
			t.Fatalf("the document lacks %s", want)
		}
		if !slices.ContainsFunc(relations, func(r string) bool { return strings.HasSuffix(r, " "+string(p.PackageSPDXIdentifier)) }) {
			t.Errorf("nothing refers to %s in %q", want, relations)
		}
	}
	if p := packages[module]; p.PackageVersion == "" || !strings.HasPrefix(p.PackageSourceInfo, "go.sum: h1:") || p.PackageExternalReferences[0].Locator != "pkg:golang/"+module+"@"+p.PackageVersion {
		t.Errorf("module %+v", p)
	}
	if p := packages["stdlib"]; "go"+p.PackageVersion != runtime.Version() {
		t.Errorf("standard library %s, want %s", p.PackageVersion, runtime.Version())
	}
	if sums := packages[name+platform].PackageChecksums; len(sums) != 1 || len(sums[0].Value) != 64 {
		t.Errorf("sums of the program: %v", sums)
	}
}

func TestSameProgramsGiveTheSameDocument(t *testing.T) {
	program := built(t)
	first, _ := written(t, time.UTC, program, program)
	second, doc := written(t, time.FixedZone("far", 5*3600), program, program)
	if !bytes.Equal(first, second) {
		t.Error("two documents of the same programs differ")
	}
	seen := map[string]bool{}
	for _, p := range doc.Packages {
		if id := string(p.PackageSPDXIdentifier); seen[id] {
			t.Errorf("package %s is there twice", id)
		} else {
			seen[id] = true
		}
	}
}

func TestFileThatIsNoProgramIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(options{}, path+".spdx.json", []string{path})
	if err == nil || !strings.HasPrefix(err.Error(), "read build information of "+path) {
		t.Errorf("error = %v", err)
	}
	if _, err := os.Stat(path + ".spdx.json"); err == nil {
		t.Error("there is a document")
	}
}

func TestCompilerOfCIsNamed(t *testing.T) {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc here")
	}
	dir := t.TempDir()
	source, object := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.o")
	if err := os.WriteFile(source, []byte("int one(void) { return 1; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), cc, "-c", "-o", object, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	content, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	if got := compiler(content); !strings.HasPrefix(got, "GCC: ") {
		t.Errorf("compiler %q", got)
	}
	program, err := os.ReadFile(built(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := compiler(program); got != "" {
		t.Errorf("compiler of a program without C: %q", got)
	}
}
