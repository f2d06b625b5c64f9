// Package files has the temporary files and folders of tests.
package files

import (
	"io/fs"
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

// Read reads a file.
func Read(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Tree returns everything below a folder by its path: the text of a file, the target of
// a link, and "folder" for a folder.
func Tree(tb testing.TB, folder string) map[string]string {
	tb.Helper()
	tree := make(map[string]string)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		switch {
		case entry.IsDir():
			tree[name] = "folder"
		case entry.Type()&fs.ModeSymlink != 0:
			tree[name], err = os.Readlink(path)
		default:
			tree[name] = Read(tb, path)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return tree
}
