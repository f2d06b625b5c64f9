package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const (
	chart   = "../helm/dra-driver-numa"
	version = "v1.2.3-rc.1"
)

// release runs the command and returns what it wrote to the file of the new folder.
func release(t *testing.T, name string, args ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "OUT", folder)
	}
	if err := run(args); err != nil {
		t.Fatal(err)
	}
	return files.Read(t, filepath.Join(folder, name))
}

func TestArchiveIsTheSameWhateverTimesAndModesAre(t *testing.T) {
	source := filepath.Join(t.TempDir(), "tool")
	write := func(mode os.FileMode, when time.Time) string {
		files.Write(t, source, "text")
		if err := errors.Join(os.Chmod(source, mode), os.Chtimes(source, when, when)); err != nil {
			t.Fatal(err)
		}
		return release(t, "a.tar.gz", "archive", "OUT/a.tar.gz", "tool=x:"+source, "LICENSE="+source)
	}
	first, second := write(0o600, time.Unix(1e9, 0)), write(0o775, time.Unix(2e9, 0))
	if first != second {
		t.Error("other times and modes give other bytes")
	}
	unpacked := files.Unpack(t, []byte(first))
	if len(unpacked) != 2 || unpacked[0].Name != "LICENSE" || unpacked[0].Mode != 0o644 || unpacked[1].Name != "tool" || unpacked[1].Mode != 0o755 {
		t.Errorf("the archive has %+v", unpacked)
	}
}

// The package has all files of the chart, and no text changes but the versions.
func TestChartIsPackedWithItsVersion(t *testing.T) {
	want := map[string]string{}
	for name, text := range files.Tree(t, chart) {
		if text != "folder" {
			want["dra-driver-numa/"+name] = text
		}
	}
	for _, file := range files.Unpack(t, []byte(release(t, "dra-driver-numa-1.2.3-rc.1.tgz", "chart", "OUT", chart, version))) {
		if strings.HasSuffix(file.Name, "/Chart.yaml") {
			for _, line := range []string{"\nversion: 1.2.3-rc.1\n", "\nappVersion: v1.2.3-rc.1\n"} {
				if !strings.Contains(file.Text, line) {
					t.Errorf("Chart.yaml lacks %q:\n%s", line, file.Text)
				}
			}
			want[file.Name] = file.Text
		}
		if file.Text != want[file.Name] {
			t.Errorf("%s is not that of the chart", file.Name)
		}
		delete(want, file.Name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

func TestSumsAreOfAllFilesButTheirOwn(t *testing.T) {
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "b"), "two")
	files.Write(t, filepath.Join(folder, "a"), "one")
	want := fmt.Sprintf("%x  a\n%x  b\n", sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two")))
	for range 2 {
		if err := run([]string{"sums", folder}); err != nil {
			t.Fatal(err)
		}
		if got := files.Read(t, filepath.Join(folder, sumsName)); got != want {
			t.Errorf("%s is %q, want %q", sumsName, got, want)
		}
	}
}

func TestNonsenseWritesNothing(t *testing.T) {
	folder := t.TempDir()
	for line, want := range map[string]string{
		"":                             usage,
		"publish x":                    usage,
		"archive OUT/a":                usage,
		"archive OUT/a b":              `"b": want NAME=FILE or NAME=x:FILE`,
		"archive OUT/a b=x:":           `"b=x:": want NAME=FILE or NAME=x:FILE`,
		"archive OUT/a b=OUT/missing":  "open OUT/missing: no such file or directory",
		"chart OUT " + chart + " dev":  `version "dev": want vMAJOR.MINOR.PATCH, such as v0.1.0`,
		"chart OUT " + chart + " v1.2": `version "v1.2": want vMAJOR.MINOR.PATCH, such as v0.1.0`,
		"chart OUT OUT/missing v1.2.3": "chart OUT/missing: stat .: no such file or directory",
		"sums OUT/missing":             "open OUT/missing: no such file or directory",
	} {
		err := run(strings.Fields(strings.ReplaceAll(line, "OUT", folder)))
		if want = strings.ReplaceAll(want, "OUT", folder); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("release %s: %v, want %s", line, err, want)
		}
	}
	if written := files.Tree(t, folder); len(written) != 1 {
		t.Errorf("wrote %v", written)
	}
}

func TestChartWithoutAVersionIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"appVersion: dev\n": "0 lines with version:, want 1",
		"version: 1\n":      "0 lines with appVersion:, want 1",
		"version: 1\nversion: 2\nappVersion: 3\n": "2 lines with version:, want 1",
	} {
		if _, err := stamp([]byte(text), version); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
