package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gather runs the command at the given time, and returns the file that it wrote.
func gather(t *testing.T, now time.Time) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	var stdout, stderr bytes.Buffer
	g := gathering{cli: cli{name: program, stdout: &stdout, stderr: &stderr}, file: name}
	if err := g.run(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unpacked are the names of the files, and all their text.
func unpacked(t *testing.T, archive []byte) (names []string, text string) {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names, text
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		text += string(content)
	}
}

// The objects of the cluster have a secret in many places. The bundle has none of them,
// but everything that a diagnosis needs.
func TestBundleHasNoSecrets(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	now := time.Date(2026, 11, 21, 12, 0, 0, 123, time.UTC)
	bundle := gather(t, now)
	names, text := unpacked(t, bundle)
	want := []string{
		"index.json", "events.json", "installation.json", "kubelets.json", "logs/dra-numa/driver-x/driver.log", "logs/dra-numa/driver-x/driver.previous.log", "nodes/worker-1.json",
		"objects/deviceclasses.json", "objects/devicetaintrules.json", "objects/nodes.json", "objects/poddisruptionbudgets.json", "objects/pods.json",
		"objects/resourceclaims.json", "objects/resourceclaimtemplates.json", "objects/resourceslices.json",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if i := strings.Index(text, secret); i >= 0 {
		t.Errorf("the secret is in it: %s", text[max(0, i-200):i+20])
	}
	for _, part := range []string{"was killed", "Publishing zones", "--exclusivity=auto", `"featureGates"`, `"kubernetes": "v1.37.1"`, `"worker-1"`, "reservedCPUs: 0-1", `"settled": false`} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in it", part)
		}
	}
	if !bytes.Equal(bundle, gather(t, now.Add(100))) {
		t.Error("of the same cluster at the same second there is another bundle")
	}
}

// Users can unpack a bundle, change an object, and use the folder.
func TestUnpackedBundleIsAFolderOfFiles(t *testing.T) {
	t.Setenv("KUBECONFIG", installedCluster(t).serve(t))
	dir := t.TempDir()
	compressed, err := gzip.NewReader(bytes.NewReader(gather(t, time.Now())))
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(compressed)
	for header, err := files.Next(); err == nil; header, err = files.Next() {
		if !strings.HasPrefix(header.Name, "objects/") {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(header.Name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := mustCall(t, "simulate", "-f", dir), mustCall(t, "simulate"); got != want {
		t.Errorf("simulate says\n%swant\n%s", got, want)
	}
}
