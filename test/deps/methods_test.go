package deps

import (
	"debug/elf"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that can call methods by their name keeps every exported method of every type
// that it uses: Go's linker cannot know which of them will be called. Templates do that, and
// made kubectl-numa larger by 60 %.
func TestKubectlNumaKeepsNoMethodsByName(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kubectl-numa")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/kubectl-numa")
	build.Dir = "../.."
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false -trimpath", "GOOS=linux")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, output)
	}
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, symbol := range symbols {
		found = found || symbol.Name == "main.main"
		if strings.HasPrefix(symbol.Name, "text/template.(*state).") {
			t.Fatalf("%s: the program can execute templates: is there a call of html/template, or of a function of cobra that sets a template?", symbol.Name)
		}
	}
	if !found {
		t.Error("the program has no symbol main.main, so this test sees nothing")
	}
}
