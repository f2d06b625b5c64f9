package docs

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestHookChecksSubjectsOfCommits(t *testing.T) {
	for subject, want := range map[string]string{
		"driver: publish the L2 cache of a zone":    "",
		"cdi, driver: keep what containers use":     "",
		"cmd/numa-pin: say which claim":             "",
		"# a comment\nlint: find amounts":           "",
		"Merge branch 'other'":                      "",
		"fixup! driver: publish zones":              "",
		"driver: published zones":                   `"published" is no verb in the imperative`,
		"driver: the zones of a node":               `"the" is no verb in the imperative`,
		"Driver: publish zones":                     `the subject is not "area: what changes"`,
		"publish zones":                             `the subject is not "area: what changes"`,
		"driver: publish zones.":                    "the subject ends with a dot",
		"driver: say " + strings.Repeat("much", 20): "the subject has more than 72 columns",
	} {
		message := filepath.Join(t.TempDir(), "message")
		files.Write(t, message, subject+"\n\nbody\n")
		output, err := exec.Command("../../.githooks/commit-msg", message).CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(output), want) {
			t.Errorf("%q: %v, %s, want %q", subject, err, output, want)
		}
	}
}
