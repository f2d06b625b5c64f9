package version

import (
	"os"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	if got := String(); got != Unknown {
		t.Errorf("a test is built without a version, and is %q, want %q", got, Unknown)
	}
	linked = "v1.2.3"
	defer func() { linked = "" }()
	if got := String(); got != linked {
		t.Errorf("the version is %q, want %q", got, linked)
	}
}

// The linker ignores the name of a variable that does not exist.
func TestTheMakefileNamesTheVariable(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	const want = "-X github.com/dra-driver-numa/dra-driver-numa/internal/version.linked=$(VERSION)"
	if err != nil || !strings.Contains(string(makefile), want) {
		t.Errorf("the Makefile lacks %s (%v)", want, err)
	}
}
