package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/golden"
)

func tutorials() []string {
	return []string{"../../docs/pending-pod.md", "../../docs/draining.md", "../../docs/workloads.md"}
}

// In a console block, a line that begins with $ is a command, with its here document if
// it has one. The lines after it are its output on both streams.
func TestTutorialSaysWhatItsCommandsSay(t *testing.T) {
	for _, tutorial := range tutorials() {
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
	golden.Check(t, tutorial, got.String())
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
