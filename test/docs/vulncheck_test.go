package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// vulncheck runs make vulncheck with a go that has govulncheck print a text and exit with a
// status, of a program.
func vulncheck(t *testing.T, program, text, status string) (output string, err error) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	const script = "#!/bin/sh\n" + `case "$*" in *golang.org/x/vuln/*"$PROGRAM"*) echo "$TEXT" >&2; exit "$STATUS";; esac` + "\n"
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "make", "-s", "-C", root, "-o", "cc", "vulncheck")
	command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "PROGRAM="+program, "TEXT="+text, "STATUS="+status, "MAKEFLAGS=")
	got, err := command.CombinedOutput()
	return string(got), err
}

// Without the database nothing was checked: that is said, and is no failure. What was found
// is one.
func TestVulncheckSaysWhatItDidNotCheck(t *testing.T) {
	for _, row := range []struct {
		program, text, status, want string
		fails                       bool
	}{
		{"", `govulncheck: fetching vulnerabilities: Get "https://vuln.go.dev/index/modules.json.gz": no such host`, "1", "vulncheck: not checked: govulncheck: fetching vulnerabilities", false},
		{"", "No vulnerabilities found.", "0", "No vulnerabilities found.", false},
		{"dra-numa", "Vulnerability #1: GO-2026-0001", "3", "Vulnerability #1: GO-2026-0001", true},
		{"numa-nvml", "Vulnerability #1: GO-2026-0001", "3", "Vulnerability #1: GO-2026-0001", true},
		{"", "go: golang.org/x/vuln: module lookup disabled", "1", "module lookup disabled", true},
	} {
		output, err := vulncheck(t, row.program, row.text, row.status)
		if (err != nil) != row.fails || !strings.Contains(output, row.want) {
			t.Errorf("%q: %v, %q, want %q and failure %t", row.text, err, output, row.want, row.fails)
		}
		if strings.Contains(output, "not checked") && !strings.Contains(row.want, "not checked") {
			t.Errorf("%q: %q", row.text, output)
		}
	}
}
