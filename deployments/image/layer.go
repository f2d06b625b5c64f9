package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deployments/archive"
)

// entry is one file or symbolic link of the image.
type entry struct {
	path   string // absolute, clean
	source string // file on this machine; empty for a link
	target string // what a link points to; empty for a file

	// dynamic permits a program that needs libraries, which the image has not: it is
	// for containers of another image that has this one as a volume.
	dynamic bool
}

// parseEntries reads arguments of the forms /path=file, /path=dynamic:file and
// /path=->target. The result is sorted by path.
func parseEntries(args []string) ([]entry, error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("no files: want /path=file or /path=->target")
	}
	entries := make([]entry, 0, len(args))
	for _, arg := range args {
		e, err := parseEntry(arg)
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	for i := range entries[1:] {
		if entries[i].path == entries[i+1].path {
			return nil, fmt.Errorf("%s is given twice", entries[i].path)
		}
	}
	return entries, nil
}

func parseEntry(arg string) (entry, error) {
	dest, source, _ := strings.Cut(arg, "=")
	if source == "" || !path.IsAbs(dest) || path.Clean(dest) != dest || dest == "/" {
		return entry{}, fmt.Errorf("%q: want /path=file or /path=->target", arg)
	}
	if target, link := strings.CutPrefix(source, "->"); link {
		if target == "" {
			return entry{}, fmt.Errorf("%q: the link has no target", arg)
		}
		return entry{path: dest, target: target}, nil
	}
	source, dynamic := strings.CutPrefix(source, "dynamic:")
	if source == "" {
		return entry{}, fmt.Errorf("%q: there is no file", arg)
	}
	return entry{path: dest, source: source, dynamic: dynamic}, nil
}

// renderLayer returns the file system of the image as a tar stream. Owner,
// times and modes are fixed: only paths and contents tell two layers apart.
func renderLayer(entries []entry) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, dir := range parents(entries) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: dir[1:] + "/", Mode: 0o755}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if err := writeEntry(w, e); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func writeEntry(w *tar.Writer, e entry) error {
	if e.target != "" {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: e.path[1:], Linkname: e.target, Mode: 0o777})
	}
	content, err := os.ReadFile(e.source)
	if err != nil {
		return err
	}
	if needsLoader(content) && !e.dynamic {
		return fmt.Errorf("add %s: %s is dynamically linked; the image has no libraries", e.path, e.source)
	}
	return archive.File{Name: e.path[1:], Mode: 0o755, Content: content}.Write(w)
}

// needsLoader says whether the file is an ELF program that asks for a dynamic
// loader; any other file may be in an image.
func needsLoader(content []byte) bool {
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// parents lists every folder above the entries, each before its children.
func parents(entries []entry) []string {
	var dirs []string
	for _, e := range entries {
		for dir := path.Dir(e.path); dir != "/"; dir = path.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
