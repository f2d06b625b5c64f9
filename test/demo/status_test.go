package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
)

func TestStatusIsOfTheClusterOfTheDemo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kubectl-numa")
	script := "#!/bin/sh\necho \"$1 of $KUBECONFIG\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", "/another/cluster")
	var got strings.Builder
	if err := showStatus(t.Context(), &got, program, "/demo/kubeconfig"); err != nil {
		t.Fatal(err)
	}
	if want := "\nstatus of /demo/kubeconfig\n"; got.String() != want {
		t.Errorf("showStatus writes %q, want %q", got.String(), want)
	}
}

func TestStatusThatFailsIsAnError(t *testing.T) {
	err := showStatus(t.Context(), &strings.Builder{}, "/bin/false", "")
	if err == nil || !strings.Contains(err.Error(), "/bin/false status") {
		t.Errorf("error %v, want one that names the command", err)
	}
	if err := checkProgram(filepath.Join(t.TempDir(), "kubectl-numa")); err == nil {
		t.Error("a program that does not exist is accepted")
	}
}

// TestNextCommandsNameWhatThereIs: the commands are to be copied.
func TestNextCommandsNameWhatThereIs(t *testing.T) {
	var got strings.Builder
	if err := printNext(&got, "bin/kubectl-numa", "numa-demo"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got.String(), "\n  "); n != 4 {
		t.Errorf("%d commands, want 4:\n%s", n, got.String())
	}
	for line := range strings.Lines(got.String()) {
		if len(line) > 81 {
			t.Errorf("line of %d columns: %s", len(line)-1, line)
		}
	}
	pod := regexp.MustCompile(`explain pod (\S+)`).FindStringSubmatch(got.String())
	if pod == nil {
		t.Fatalf("no pod is explained:\n%s", got.String())
	}
	manifest, err := demo.Manifests.ReadFile("pods.yaml")
	if err != nil || !strings.Contains(string(manifest), "name: "+pod[1]+"\n") {
		t.Errorf("the demo has no pod %s (%v)", pod[1], err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil || !strings.Contains(string(makefile), "\ncluster-down:\n") {
		t.Errorf("the Makefile has no target cluster-down (%v)", err)
	}
}
