package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is pushed and signed names a commit, so it has to be that commit. The Makefile asks a
// repository of the test.
func TestPushRefusesWhatIsNotTheCommit(t *testing.T) {
	tree := t.TempDir()
	t.Setenv("GIT_DIR", filepath.Join(tree, ".git"))
	t.Setenv("GIT_WORK_TREE", tree)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	commit := func(message string) {
		t.Helper()
		output(t, "git", "-c", "user.name=t", "-c", "user.email=t", "commit", "--quiet", "--allow-empty", "-m", message)
	}
	push := func() (string, error) {
		dry := exec.CommandContext(t.Context(), "make", "-n", "push", "VERSION="+version, "REGISTRY=registry.example/team")
		dry.Dir = root
		said, err := dry.CombinedOutput()
		return string(said), err
	}
	refuses := func(want string) {
		t.Helper()
		said, err := push()
		if err == nil || !strings.Contains(said, want) {
			t.Errorf("%v, want %q:\n%s", err, want, said)
		}
	}
	takes := func() {
		t.Helper()
		if said, err := push(); err != nil {
			t.Errorf("%v\n%s", err, said)
		}
	}
	output(t, "git", "init", "--quiet")
	commit("first")
	takes()
	output(t, "git", "tag", version)
	takes()
	write(t, filepath.Join(tree, "new"), "")
	refuses("make push: commit or remove these files first: new")
	if err := os.Remove(filepath.Join(tree, "new")); err != nil {
		t.Fatal(err)
	}
	commit("second")
	refuses("make push: the tag " + version + " is of another commit")
}
