package files

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Render returns what a function writes.
func Render(tb testing.TB, write func(io.Writer) error) string {
	tb.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		tb.Fatal(err)
	}
	return out.String()
}

// Golden fails the test where the file at path, which was reviewed, differs from what the
// test got. The flag -update of the test rewrites the file.
func Golden(tb testing.TB, path, got string) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		tb.Errorf("%s differs (-golden +got); -update rewrites it:\n%s", path, diff)
	}
}

// Contains fails the test for each part that a text lacks.
func Contains(tb testing.TB, text string, parts ...string) {
	tb.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			tb.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// SameJSON fails the test unless two values have the same JSON. The text what says which
// values these are.
func SameJSON(tb testing.TB, what string, got, want any) {
	tb.Helper()
	var texts [2]string
	for i, value := range []any{want, got} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			tb.Fatal(err)
		}
		texts[i] = string(text)
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		tb.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
