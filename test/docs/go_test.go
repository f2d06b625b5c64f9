package docs

import (
	"go/version"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The next Kubernetes needs a newer Go, which go downloads.
func TestContributingNamesTheGoOfTheModules(t *testing.T) {
	needed := ""
	for _, pattern := range []string{"go.mod", "tools/*.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d modules (%v)", pattern, len(paths), err)
		}
		for _, path := range paths {
			match := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(files.Read(t, path))
			if !strings.Contains(path, "kubernetes-1.38") && version.Compare("go"+match[1], "go"+needed) > 0 {
				needed = match[1]
			}
		}
	}
	files.Contains(t, files.Read(t, root+"/CONTRIBUTING.md"), "Go "+needed+" or newer")
}
