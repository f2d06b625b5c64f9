// Package files has the temporary files and folders of tests.
package files

import (
	"os"
	"path/filepath"
	"testing"
)

// OpenTemp opens an empty folder until the test ends.
func OpenTemp(tb testing.TB) *os.Root {
	tb.Helper()
	return Open(tb, tb.TempDir())
}

// Open opens a folder until the test ends.
func Open(tb testing.TB, folder string) *os.Root {
	tb.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = root.Close() })
	return root
}

// Write writes a file, and the folders above it that are missing.
func Write(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}
