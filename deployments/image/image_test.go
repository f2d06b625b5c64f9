package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// writeImage runs the command over one small file and one link, with more flags.
func writeImage(t *testing.T, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "tool")
	files.Write(t, source, "#!/bin/sh\n")
	out := filepath.Join(dir, "out.tar")
	args := []string{"-ref", "localhost/tool:1", "-out", out, "-arch", "amd64", "-entrypoint", "/bin/tool run", "-stop-signal", "SIGKILL"}
	if err := run(append(append(args, more...), "/bin/tool="+source, "/bin/sh=->tool"), io.Discard); err != nil {
		t.Fatal(err)
	}
	return files.Read(t, out)
}

// untar returns the texts of files by their names. For a link, it returns -> and its
// target.
func untar(t *testing.T, archive string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	for _, file := range files.Untar(t, strings.NewReader(archive)) {
		contents[file.Name] = file.Text
		if file.Typeflag == tar.TypeSymlink {
			contents[file.Name] = "->" + file.Linkname
		}
	}
	return contents
}

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func TestSameInputGivesSameBytes(t *testing.T) {
	if first, second := writeImage(t), writeImage(t); first != second {
		t.Error("two runs over the same files differ")
	}
}

func TestEveryBlobIsNamedByItsDigest(t *testing.T) {
	blobs := 0
	for name, content := range untar(t, writeImage(t)) {
		want, blob := strings.CutPrefix(name, "blobs/sha256/")
		if !blob {
			continue
		}
		blobs++
		if sum := sha256.Sum256([]byte(content)); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s holds other content", name)
		}
	}
	if blobs != 3 {
		t.Errorf("%d blobs, want layer, configuration and manifest", blobs)
	}
}

func TestBothIndexesLeadToTheFiles(t *testing.T) {
	files := untar(t, writeImage(t))
	top := decode[index](t, files["index.json"]).Manifests[0]
	if got := top.Annotations[annotationName]; got != "localhost/tool:1" {
		t.Errorf("image name = %q", got)
	}
	m := decode[manifest](t, files[blobName(top.Digest)])
	c := decode[imageConfig](t, files[blobName(m.Config.Digest)])
	if got := strings.Join(c.Config.Entrypoint, " "); got != "/bin/tool run" {
		t.Errorf("entrypoint = %q", got)
	}
	if got := c.Config.StopSignal; got != "SIGKILL" {
		t.Errorf("stop signal %q", got)
	}
	layer := untar(t, files[blobName(m.Layers[0].Digest)])
	if got := layer["bin/sh"]; got != "->tool" {
		t.Errorf("bin/sh = %q, want a link to tool", got)
	}
	if got := layer["bin/tool"]; got != "#!/bin/sh\n" {
		t.Errorf("bin/tool = %q", got)
	}
	if _, ok := layer["bin/"]; !ok {
		t.Error("folder bin/ is not in the layer")
	}
	d := decode[[]dockerImage](t, files["manifest.json"])[0]
	if d.Config != blobName(m.Config.Digest) || d.Layers[0] != blobName(m.Layers[0].Digest) {
		t.Errorf("manifest.json = %+v, want the blobs of index.json", d)
	}
}

func TestImageOfAReleaseIsCompressedAndHasLabels(t *testing.T) {
	found := untar(t, writeImage(t, "-compress", "-label", "org.opencontainers.image.version=v1", "-label", "org.opencontainers.image.created=2001-09-09T01:46:40Z"))
	want := map[string]string{"org.opencontainers.image.version": "v1", "org.opencontainers.image.created": "2001-09-09T01:46:40Z"}
	m := manifestOf(t, found)
	c := decode[imageConfig](t, found[blobName(m.Config.Digest)])
	if !maps.Equal(m.Annotations, want) || !maps.Equal(c.Config.Labels, want) || c.Created != "2001-09-09T01:46:40Z" {
		t.Errorf("annotations %q, labels %q, created %s", m.Annotations, c.Config.Labels, c.Created)
	}
	layer := found[blobName(m.Layers[0].Digest)]
	if unpacked := files.Unpack(t, []byte(layer)); m.Layers[0].MediaType != typeGzip || unpacked[len(unpacked)-1].Text != "#!/bin/sh\n" {
		t.Errorf("layer %s with %+v", m.Layers[0].MediaType, unpacked)
	}
	// A reader that unpacks the layer compares what it gets with this digest.
	if want := manifestOf(t, untar(t, writeImage(t))).Layers[0].Digest; c.RootFS.DiffIDs[0] != want {
		t.Errorf("diff id %s, want %s", c.RootFS.DiffIDs[0], want)
	}
}

// manifestOf returns the manifest of an archive's only image.
func manifestOf(t *testing.T, found map[string]string) manifest {
	t.Helper()
	return decode[manifest](t, found[blobName(decode[index](t, found["index.json"]).Manifests[0].Digest)])
}

func TestBadCommandLineIsOneUsageLine(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-out x /a=b", `usage: -ref "": want name:tag`},
		{"-ref a -out x /a=b", `usage: -ref "a": want name:tag`},
		{"-ref localhost:5000/a -out x /a=b", `usage: -ref "localhost:5000/a": want name:tag`},
		{"-ref a:1 /a=b", "usage: -out is empty: want a file"},
		{"-ref a:1 -out x", "usage: no files: want /path=file or /path=->target"},
		{"-ref a:1 -out x a=b", `usage: "a=b": want /path=file or /path=->target`},
		{"-ref a:1 -out x /a/../b=c", `usage: "/a/../b=c": want /path=file or /path=->target`},
		{"-ref a:1 -out x /a=->", `usage: "/a=->": the link has no target`},
		{"-ref a:1 -out x /a=b /a=c", "usage: /a is given twice"},
		{"-ref a:1 -out x -label a /a=b", `usage: invalid value "a" for flag -label: want key=value`},
		{"-size 3", "usage: flag provided but not defined: -size"},
	} {
		err := run(strings.Fields(tc.args), io.Discard)
		if !errors.Is(err, errUsage) || err.Error() != tc.want {
			t.Errorf("image %s: %v, want %s", tc.args, err, tc.want)
		}
	}
}

func TestMissingFileLeavesNoArchive(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.tar")
	err := run([]string{"-ref", "a:1", "-out", out, "/a=" + out + ".absent"}, io.Discard)
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, errUsage) {
		t.Errorf("error = %v, want the missing file", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of the archive: %v, want none", err)
	}
}

func TestDynamicProgramIsRefused(t *testing.T) {
	shell, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Skip("no /bin/sh to try with")
	}
	if content, err := os.ReadFile(shell); err != nil || !needsLoader(content) {
		t.Skip("/bin/sh is not dynamically linked here")
	}
	err = run([]string{"-ref", "a:1", "-out", filepath.Join(t.TempDir(), "x"), "/sh=" + shell}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "dynamically linked") {
		t.Errorf("error = %v, want a refusal", err)
	}
	if err := run([]string{"-ref", "a:1", "-out", filepath.Join(t.TempDir(), "x"), "/sh=dynamic:" + shell}, io.Discard); err != nil {
		t.Errorf("error = %v of one that is for another image", err)
	}
}
