package licenses

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// built builds a program that has modules with licences in several folders.
func built(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "numa-webhook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/numa-webhook").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

func TestEveryModuleOfAProgramHasALicence(t *testing.T) {
	program := built(t)
	page, err := Of(t.Context(), program)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 30 {
		t.Fatalf("the program has only %d modules", len(info.Deps))
	}
	for _, required := range info.Deps {
		m := linked(required)
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m.Path+"@"+m.Version) + `: (LICENSE|COPYING)`).Match(page) {
			t.Errorf("%s@%s is missing", m.Path, m.Version)
		}
	}
	files.Contains(t, string(page), "\nGo "+info.GoVersion+": LICENSE\n", "\nGo "+info.GoVersion+": PATENTS\n",
		": third_party/forked/golang/LICENSE\n", "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION")
	if again, err := Of(t.Context(), program, program); err != nil || string(again) != string(page) {
		t.Errorf("the same program twice gives another text, or %v", err)
	}
}

// Licences that are the same are there once, and what is no licence is left out.
func TestTextsAreThereOnce(t *testing.T) {
	var c collection
	if err := c.add("a@v1", fstest.MapFS{"LICENSE": {Data: []byte("free\n\n")}, "license.go": {Data: []byte("package a")}, "b/testdata/LICENSE": {Data: []byte("test")}}); err != nil {
		t.Fatal(err)
	}
	if err := c.add("b@v1", fstest.MapFS{"third_party/x/COPYING.txt": {Data: []byte("free")}, "NOTICE": {Data: []byte("by us")}}); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("=", 80) + "\n"
	want := "The programs contain what is named here, under the licence that follows the names.\n" +
		"\n" + line + "a@v1: LICENSE\nb@v1: third_party/x/COPYING.txt\n" + line + "\nfree\n" +
		"\n" + line + "b@v1: NOTICE\n" + line + "\nby us\n"
	if got := string(c.render()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := c.add("c@v1", fstest.MapFS{"main.go": {}}); err == nil {
		t.Error("a module without a licence is no error")
	}
}

func TestWhatIsNoProgramIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Of(t.Context(), path); err == nil || !strings.HasPrefix(err.Error(), "read build information of "+path+": ") {
		t.Errorf("error %v", err)
	}
}
