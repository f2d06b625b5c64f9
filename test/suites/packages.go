package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// concurrent is what a line of Go has where more than one goroutine is at work.
var concurrent = regexp.MustCompile(`(?m)^[ \t]*go (func|[A-Za-z_.]+[(])|[.]Go[(]|\bsync[.](RW)?(Mutex|WaitGroup)|httptest[.]`)

// packages returns packages of the module whose tests need no cluster. The race detector takes
// ten times as long: it has those with goroutines only (racy), and of them no long test of a
// single goroutine (-short). What it runs in full is not run without it (plain).
func (m *machine) packages(which string) ([]string, error) {
	withGoroutines, withLong, err := folders(m.folder)
	if err != nil {
		return nil, err
	}
	racy, err := m.list(withGoroutines)
	if err != nil || which == "racy" {
		return racy, err
	}
	if which != "plain" {
		return nil, fmt.Errorf("{packages %s}: allowed are plain and racy", which)
	}
	long, err := m.list(withLong)
	if err != nil {
		return nil, err
	}
	all, err := m.list([]string{"./..."})
	return slices.DeleteFunc(all, func(name string) bool {
		return strings.HasSuffix(name, "/cmd/numa-nvml") || slices.Contains(racy, name) && !slices.Contains(long, name)
	}), err
}

// list returns the packages of patterns, but those whose tests need a cluster.
func (m *machine) list(patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	output, err := m.answer(nil, append([]string{"go", "list"}, patterns...)...)
	names := slices.DeleteFunc(strings.Fields(output), func(name string) bool {
		return strings.Contains(name, "/test/e2e") || strings.Contains(name, "/test/apiserver") || strings.Contains(name, "/test/scheduler")
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// folders returns the folders of the module at root whose Go files have goroutines, and those
// whose tests leave out some if the test is to be short.
func folders(root string) (withGoroutines, withLong []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipped(root, path)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if concurrent.Match(text) {
			withGoroutines = append(withGoroutines, "./"+folder)
		}
		if strings.HasSuffix(path, "_test.go") && strings.Contains(string(text), "testing.Short()") {
			withLong = append(withLong, "./"+folder)
		}
		return err
	})
	return withGoroutines, withLong, err
}

// skipped returns fs.SkipDir for a folder that has no package of the module at root.
func skipped(root, path string) error {
	if path == root {
		return nil
	}
	if name := filepath.Base(path); name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}
