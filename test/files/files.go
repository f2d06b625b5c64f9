// Package files has the temporary files, folders, archives, golden files and recorded machines
// of tests, and compares texts.
package files

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// YAML returns the documents in the YAML examples of a page, which may be indented as
// part of a list.
func YAML(tb testing.TB, path string) (documents []string) {
	tb.Helper()
	examples := regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")
	for _, example := range examples.FindAllStringSubmatch(Read(tb, path), -1) {
		text := strings.ReplaceAll("\n"+example[2], "\n"+example[1], "\n")
		documents = append(documents, strings.Split(text, "\n---\n")...)
	}
	if len(documents) == 0 {
		tb.Fatalf("%s has no example in YAML", path)
	}
	return documents
}

// Unpacked is a file of an archive.
type Unpacked struct {
	tar.Header
	Text string
}

// Unpack returns the files of a tar archive that is compressed with gzip, in their order.
func Unpack(tb testing.TB, archive []byte) (list []Unpacked) {
	tb.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		tb.Fatal(err)
	}
	return Untar(tb, compressed)
}

// Untar returns the files of a tar archive in their order.
func Untar(tb testing.TB, archive io.Reader) (list []Unpacked) {
	tb.Helper()
	for files := tar.NewReader(archive); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			tb.Fatal(err)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, Unpacked{*header, string(text)})
	}
}
