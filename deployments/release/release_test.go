package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	return files.Read(t, filepath.Join(folder, name))
}

// The program in it is this test.
func TestArchiveIsTheSameWhateverTimesAndModesAre(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, source := files.Read(t, self), filepath.Join(t.TempDir(), "tool")
	write := func(mode os.FileMode, when time.Time) string {
		files.Write(t, source, program)
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
	var got []string
	for _, file := range unpacked {
		got = append(got, fmt.Sprintf("%s %o", file.Name, file.Mode))
	}
	if want := []string{"LICENSE 644", "THIRD_PARTY_LICENSES 644", "tool 755"}; !slices.Equal(got, want) {
		t.Errorf("the archive has %q, want %q", got, want)
	}
	files.Contains(t, unpacked[1].Text, "\nGo "+runtime.Version()+": LICENSE\n")
	if got := release(t, "texts", "licenses", "OUT/texts", self); got != unpacked[1].Text {
		t.Errorf("the licences of an image are others than those of the archive:\n%s", got)
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

// Whoever pulls the chart gets the image from where the chart is.
func TestChartOfARegistryHasItsImage(t *testing.T) {
	packed := map[string]string{}
	for _, file := range files.Unpack(t, []byte(release(t, "dra-driver-numa-1.2.3-rc.1.tgz", "chart", "OUT", chart, version, "registry.example:5000/team"))) {
		packed[strings.TrimPrefix(file.Name, "dra-driver-numa/")] = file.Text
	}
	values, readme := files.Read(t, chart+"/values.yaml"), files.Read(t, chart+"/README.md")
	if want := strings.Replace(values, "\n  repository: localhost/dra-driver-numa\n", "\n  repository: registry.example:5000/team/dra-driver-numa\n", 1); values == want || packed["values.yaml"] != want {
		t.Errorf("values.yaml is\n%s", packed["values.yaml"])
	}
	files.Contains(t, packed["README.md"], "\nhelm install dra-driver-numa oci://registry.example:5000/team/charts/dra-driver-numa ",
		"| `image.repository` | `\"registry.example:5000/team/dra-driver-numa\"` |")
	if strings.Contains(packed["README.md"], "REGISTRY") || strings.Count(packed["README.md"], "\n") != strings.Count(readme, "\n") {
		t.Errorf("README.md is\n%s", packed["README.md"])
	}
}

func TestSumsAreOfAllFilesButTheirOwn(t *testing.T) {
	folder := t.TempDir()
	files.Write(t, filepath.Join(folder, "b"), "two")
	files.Write(t, filepath.Join(folder, "a"), "one")
	want := fmt.Sprintf("%x  a\n%x  b\n", sha256.Sum256([]byte("one")), sha256.Sum256([]byte("two")))
	for range 2 {
		if err := run(t.Context(), []string{"sums", folder}); err != nil {
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
		"":                   usage,
		"publish x":          usage,
		"archive OUT/a":      usage,
		"archive OUT/a b":    `"b": want NAME=FILE or NAME=x:FILE`,
		"archive OUT/a b=x:": `"b=x:": want NAME=FILE or NAME=x:FILE`,
		"archive OUT/a b=x:" + chart + "/Chart.yaml": "read build information of " + chart + "/Chart.yaml: ",
		"archive OUT/a b=OUT/missing":                "open OUT/missing: no such file or directory",
		"licenses OUT/a":                             usage,
		"licenses OUT/a " + chart:                    "read build information of " + chart + ": ",
		"chart OUT " + chart + " dev":                `version "dev": want vMAJOR.MINOR.PATCH, such as v0.1.0`,
		"chart OUT " + chart + " v1.2":               `version "v1.2": want vMAJOR.MINOR.PATCH, such as v0.1.0`,
		"chart OUT " + chart + " v1.2.3 https://a":   `registry "https://a": want HOST[:PORT][/PATH], such as registry.example/team`,
		"chart OUT OUT/missing v1.2.3":               "chart OUT/missing: stat .: no such file or directory",
		"sums OUT/missing":                           "open OUT/missing: no such file or directory",
	} {
		err := run(t.Context(), strings.Fields(strings.ReplaceAll(line, "OUT", folder)))
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

// The manifest has the checksums of the archives beside it.
func TestManifestOfKrewIsFilledIn(t *testing.T) {
	folder := t.TempDir()
	template := filepath.Join(folder, "template")
	files.Write(t, template, "version: {{ .TagName }}\nplatforms:\n- bin: tool\n    {{addURIAndSha \"https://example.com/{{ .TagName }}/tool_{{ .TagName }}.tar.gz\" .TagName }}\n")
	args := []string{"krew", folder, template, version}
	if err := run(t.Context(), args); err == nil || !strings.Contains(err.Error(), "tool_v1.2.3-rc.1.tar.gz: no such file") {
		t.Errorf("without the archive: error %v", err)
	}
	files.Write(t, filepath.Join(folder, "tool_v1.2.3-rc.1.tar.gz"), "bytes")
	if err := run(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("version: v1.2.3-rc.1\nplatforms:\n- bin: tool\n    uri: https://example.com/v1.2.3-rc.1/tool_v1.2.3-rc.1.tar.gz\n    sha256: %x\n", sha256.Sum256([]byte("bytes")))
	if got := files.Read(t, filepath.Join(folder, "numa.yaml")); got != want {
		t.Errorf("the manifest is\n%s, want\n%s", got, want)
	}
}
