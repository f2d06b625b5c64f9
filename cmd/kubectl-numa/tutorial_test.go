package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// tutorials returns the pages that have commands for a reader without a cluster.
func tutorials(t *testing.T) (paths []string) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if strings.Contains(testfiles.Read(t, page), "\n```console\n") {
			paths = append(paths, page)
		}
	}
	if len(paths) < 5 {
		t.Errorf("only %q have blocks of commands with what they say", paths)
	}
	return paths
}

// alone is a command whose output goes to no cluster.
var alone = regexp.MustCompile(`(?m)^kubectl numa generate [^|]*$`)

// A block of the language sh needs a cluster or a node, so no test follows it.
func TestCommandsWithoutAClusterAreInConsoleBlocks(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		for i, block := range strings.Split(testfiles.Read(t, page), "\n```sh\n") {
			block, _, _ = strings.Cut(block, "\n```\n")
			if i > 0 && alone.MatchString(block) {
				t.Errorf("%s: this needs no cluster, and belongs into a block of the language console:\n%s", filepath.Base(page), block)
			}
		}
	}
}

// In a console block, a line that begins with $ is a command, with its here document if
// it has one. The lines after it are its output on both streams.
func TestTutorialSaysWhatItsCommandsSay(t *testing.T) {
	for _, tutorial := range tutorials(t) {
		t.Run(filepath.Base(tutorial), func(t *testing.T) { follow(t, tutorial) })
	}
}

func follow(t *testing.T, tutorial string) {
	t.Helper()
	text := testfiles.Read(t, tutorial)
	shell := tutorialShell(t)
	var got strings.Builder
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		got.WriteString(lines[i])
		if lines[i] != "```console\n" {
			continue
		}
		for i++; lines[i] != "```\n"; {
			command := strings.TrimPrefix(lines[i], "$ ")
			i++
			if strings.Contains(command, "<<EOF") {
				for done := false; !done; i++ {
					command += lines[i]
					done = lines[i] == "EOF\n"
				}
			}
			got.WriteString("$ " + command + shell(command))
			for !strings.HasPrefix(lines[i], "$ ") && lines[i] != "```\n" {
				i++ // what it said when this was written
			}
		}
		got.WriteString(lines[i])
	}
	testfiles.Golden(t, tutorial, got.String())
}

// tutorialShell runs a command in the situation of the tutorial's reader: in an empty folder,
// with kubectl.
func tutorialShell(t *testing.T) func(command string) (output string) {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, bin+"/kubectl-numa"); err != nil {
		t.Fatal(err)
	}
	kubectl := "#!/bin/sh\nplugin=kubectl-$1\nshift\nexec \"$plugin\" \"$@\"\n"
	if err := os.WriteFile(bin+"/kubectl", []byte(kubectl), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(command string) string {
		shell := exec.CommandContext(t.Context(), "sh", "-c", command)
		shell.Dir = dir
		shell.Env = append(os.Environ(), asProgram+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
		output, _ := shell.CombinedOutput() // some commands are to fail
		return string(output)
	}
}
