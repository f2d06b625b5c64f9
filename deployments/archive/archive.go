// Package archive writes the archives of a release. Only names, modes and contents of files
// decide the bytes of an archive: owners and times are always the same. It decides nothing
// about what is in an archive.
package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"slices"
	"strings"
)

// File is a regular file of an archive.
type File struct {
	Name    string // relative, with slashes
	Mode    int64  // the bits of permission
	Content []byte
}

// Write appends the file to a tar archive.
func (f File) Write(w *tar.Writer) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Name, Mode: f.Mode, Size: int64(len(f.Content))}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := w.Write(f.Content)
	return err
}

// Compress returns a tar archive of the files in the order of their names, compressed with gzip.
func Compress(files []File) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for _, file := range sorted {
		if err := file.Write(w); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return Gzip(buf.Bytes())
}

// Gzip returns the content compressed, without a time. The bytes depend on the version of Go, which
// has the compressor.
func Gzip(content []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Replace writes a file at once: a build that is interrupted leaves no half of it under its
// name.
func Replace(name string, content []byte) error {
	partial := name + ".new"
	if err := os.WriteFile(partial, content, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, name)
}
