package main

import (
	"errors"
	"flag"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// In documents, the program has only commands and flags that exist.
func TestDocumentedCommandsExist(t *testing.T) {
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, path := range append(paths, "../../README.md") {
		for _, match := range regexp.MustCompile("(?:/|`)dra-numa ([a-z-][^`>#\n]*)").FindAllStringSubmatch(files.Read(t, path), -1) {
			args := strings.Fields(strings.ReplaceAll(match[1], "verify|dump", "verify"))
			seen[args[0]] = true
			if err := run(t.Context(), append(args, "-h"), func(string) string { return "" }, &strings.Builder{}); !errors.Is(err, flag.ErrHelp) {
				t.Errorf("%s: dra-numa %s: %v", filepath.Base(path), match[1], err)
			}
		}
	}
	for _, command := range []string{"checkpoint", "config", "machine", "state", "test-release", "uninstall"} {
		if !seen[command] {
			t.Errorf("no page names dra-numa %s", command)
		}
	}
}
