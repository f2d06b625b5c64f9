package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var signed = flag.String("signed", "", "the version in bin/release that is pushed and signed, such as v0.1.0; empty: nothing is, because the build of cosign takes minutes")

// Whoever has the public key can check all names of a release, with the lines of the page about
// releases. Another key, and what was not signed, do not pass.
func TestSignedPush(t *testing.T) {
	if *signed == "" {
		t.Skip("it builds cosign: make release-check")
	}
	folder, where := t.TempDir(), start(t)
	cosign := strings.TrimSpace(output(t, "go", "tool", "-modfile=tools/cosign.mod", "-n", "cosign"))
	t.Setenv("COSIGN_PASSWORD", "of a test")
	for _, name := range []string{"cosign", "other"} {
		output(t, cosign, "generate-key-pair", "--output-key-prefix", filepath.Join(folder, name))
	}
	push := []string{"--no-print-directory", "--old-file=release", "push", "VERSION=" + *signed}
	output(t, "make", append(push, "REGISTRY="+where, "KEY="+filepath.Join(folder, "cosign.key"))...)

	check := block(t, root+"/docs/releasing.md", "### Signatures")
	verify := func(where, check string) error {
		shell := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", strings.NewReplacer("REGISTRY", where, "0.1.0", strings.TrimPrefix(*signed, "v")).Replace(check))
		shell.Dir, shell.Stderr = folder, t.Output()
		shell.Env = append(os.Environ(), "PATH="+filepath.Dir(cosign)+":"+os.Getenv("PATH"))
		return shell.Run()
	}
	if err := verify(where, check); err != nil {
		t.Errorf("%s: %v", check, err)
	}
	unsigned := start(t)
	output(t, "make", append(push, "REGISTRY="+unsigned)...)
	for _, line := range strings.Split(strings.TrimSpace(check), "\n") {
		if verify(where, strings.ReplaceAll(line, "cosign.pub", "other.pub")) == nil {
			t.Errorf("another key passes: %s", line)
		}
		if verify(unsigned, line) == nil {
			t.Errorf("what was not signed passes: %s", line)
		}
	}
}
