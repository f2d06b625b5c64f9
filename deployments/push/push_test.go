package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

const (
	version = "v1.2.3-rc.1"
	root    = "../.."
)

var labels = map[string]string{
	ocispec.AnnotationVersion: version, ocispec.AnnotationRevision: "0a1b2c", ocispec.AnnotationCreated: "2001-09-09T01:46:40Z",
	ocispec.AnnotationLicenses: "Apache-2.0", ocispec.AnnotationSource: "https://example.com/source", ocispec.AnnotationTitle: project,
}

// start starts a registry and returns a folder of it, such as 127.0.0.1:34567/team.
func start(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/team"
}

// output runs a program of this repository, in its folder, and returns what it prints.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	command := exec.CommandContext(t.Context(), program, args...)
	command.Stdout, command.Stderr, command.Dir = &out, &problems, root
	home := t.TempDir() // no repositories and caches of whoever runs the test
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if err := command.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), args, err, &problems)
	}
	return out.String()
}

// helm returns the program that HELM names, or that of the tools module.
func helm(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("HELM"); program != "" {
		return program
	}
	return strings.TrimSpace(output(t, "go", "tool", "-modfile=tools/go.mod", "-n", "helm"))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// programs is the folder of those that write a release.
var programs string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "push")
	if err != nil {
		log.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", folder+"/", "./deployments/image", "./deployments/release")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		log.Fatal(err)
	}
	programs = folder
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// writeImage writes an archive with the image for an architecture.
func writeImage(t *testing.T, folder, arch string, labels map[string]string) {
	t.Helper()
	tool := filepath.Join(t.TempDir(), "dra-numa")
	write(t, tool, "#!/bin/sh\n# for "+arch)
	args := []string{"-arch", arch, "-ref", "localhost/" + project + ":" + version, "-out", fmt.Sprintf("%s/%s-image_%s_linux_%s.tar", folder, project, version, arch), "-compress", "-entrypoint", "/dra-numa"}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		args = append(args, "-label", key+"="+labels[key])
	}
	output(t, filepath.Join(programs, "image"), append(args, "/dra-numa="+tool, "/licenses/LICENSE=LICENSE")...)
}

// written returns a folder as make release writes it, but of small programs.
func written(t *testing.T, registry string) string {
	t.Helper()
	folder := t.TempDir()
	output(t, filepath.Join(programs, "release"), "chart", folder, "deployments/helm/"+project, version, registry)
	for _, arch := range []string{"arm64", "amd64"} {
		writeImage(t, folder, arch, labels)
		write(t, fmt.Sprintf("%s/kubectl-numa_%s_linux_%s.tar.gz", folder, version, arch), "plugin for "+arch)
	}
	write(t, filepath.Join(folder, project+"_"+version+".spdx.json"), `{"spdxVersion": "SPDX-2.3"}`)
	write(t, filepath.Join(folder, "install.yaml"), "kind: Namespace\n")
	write(t, filepath.Join(folder, "SHA256SUMS"), "")
	return folder
}

// pushed pushes a folder and returns what is printed.
func pushed(t *testing.T, folder, registry string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), folder, version, registry, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// repository is a client of a repository for reading.
func repository(t *testing.T, name string) *remote.Repository {
	t.Helper()
	r, err := remote.NewRepository(name)
	if err != nil {
		t.Fatal(err)
	}
	r.PlainHTTP = true
	return r
}

// pull reads the manifest that a tag or a digest leads to.
func pull[T any](t *testing.T, from *remote.Repository, reference string) (value T) {
	t.Helper()
	_, text, err := oras.FetchBytes(t.Context(), from, reference, oras.DefaultFetchBytesOptions)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// blob reads a blob.
func blob(t *testing.T, from *remote.Repository, d ocispec.Descriptor) string {
	t.Helper()
	text, err := content.FetchAll(t.Context(), from, d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestImageIsOneNameForBothArchitectures(t *testing.T) {
	where := start(t)
	pushed(t, written(t, where), where)
	images := repository(t, where+"/dra-driver-numa")
	index := pull[ocispec.Index](t, images, version)
	if index.MediaType != ocispec.MediaTypeImageIndex || !maps.Equal(index.Annotations, labels) {
		t.Errorf("index of type %s, annotations %q", index.MediaType, index.Annotations)
	}
	var platforms []string
	for _, d := range index.Manifests {
		platforms = append(platforms, d.Platform.OS+"/"+d.Platform.Architecture)
		manifest := pull[ocispec.Manifest](t, images, d.Digest.String())
		var config ocispec.Image
		if err := json.Unmarshal([]byte(blob(t, images, manifest.Config)), &config); err != nil {
			t.Fatal(err)
		}
		if config.Architecture != d.Platform.Architecture || !slices.Equal(config.Config.Entrypoint, []string{"/dra-numa"}) || !maps.Equal(config.Config.Labels, labels) || config.Created.Unix() != 1e9 {
			t.Errorf("%s has the configuration %+v", d.Platform.Architecture, config)
		}
		if !maps.Equal(manifest.Annotations, labels) || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != ocispec.MediaTypeImageLayerGzip {
			t.Errorf("%s has the manifest %+v", d.Platform.Architecture, manifest)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms %q", platforms)
	}
	// Tools ask the registry for what is attached to an image.
	var found []ocispec.Descriptor
	top, err := images.Resolve(t.Context(), version)
	if err == nil {
		err = images.Referrers(t.Context(), top, "", func(referrers []ocispec.Descriptor) error { found = append(found, referrers...); return nil })
	}
	if err != nil || len(found) != 1 {
		t.Fatalf("%d SBOMs of the image, %v", len(found), err)
	}
	sbom := pull[ocispec.Manifest](t, images, found[0].Digest.String())
	if text := blob(t, images, sbom.Layers[0]); text != `{"spdxVersion": "SPDX-2.3"}` || sbom.ArtifactType != typeSBOM {
		t.Errorf("SBOM %s of type %s", text, sbom.ArtifactType)
	}
}

// Helm pulls the chart, and the chart pulls the image, from where both were pushed.
func TestHelmInstallsWhatWasPushed(t *testing.T) {
	where := start(t)
	folder := written(t, where)
	pushed(t, folder, where)
	chart, program, into := "oci://"+where+"/charts/dra-driver-numa", helm(t), t.TempDir()
	output(t, program, "pull", chart, "--version", version[1:], "--plain-http", "--destination", into)
	name := "dra-driver-numa-" + version[1:] + ".tgz"
	got, err := os.ReadFile(filepath.Join(into, name))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Helm pulls another package, %v", err)
	}
	output(t, program, "pull", chart, "--version", version[1:], "--plain-http", "--untar", "--untardir", filepath.Join(into, "deployments/helm")) // docs/chart.md
	if _, err := os.Stat(filepath.Join(into, "deployments/helm/dra-driver-numa/platforms/talos.yaml")); err != nil {
		t.Error(err)
	}
	rendered := output(t, program, "template", "dra-driver-numa", chart, "--devel", "--plain-http", "--namespace", "dra-numa", "--set", "webhook.enabled=true")
	images := map[string]bool{}
	for line := range strings.Lines(rendered) {
		if image, found := strings.CutPrefix(strings.TrimSpace(line), "image: "); found {
			images[image] = true
		}
	}
	if want := fmt.Sprintf("%q", where+"/dra-driver-numa:"+version); len(images) != 1 || !images[want] {
		t.Errorf("the chart has the images %q, want %s", slices.Collect(maps.Keys(images)), want)
	}
	if _, err := repository(t, where+"/dra-driver-numa").Resolve(t.Context(), version); err != nil {
		t.Error(err)
	}
	manifest := pull[ocispec.Manifest](t, repository(t, where+"/charts/dra-driver-numa"), version[1:])
	if got := manifest.Annotations; got[ocispec.AnnotationVersion] != version[1:] || got[ocispec.AnnotationCreated] != labels[ocispec.AnnotationCreated] || got[ocispec.AnnotationDescription] == "" {
		t.Errorf("annotations of the chart %q", got)
	}
}

func TestOtherFilesAreInOneArtifact(t *testing.T) {
	where := start(t)
	pushed(t, written(t, where), where)
	files := repository(t, where+"/files/dra-driver-numa")
	manifest := pull[ocispec.Manifest](t, files, version)
	texts := map[string]string{}
	for _, layer := range manifest.Layers {
		texts[layer.Annotations[ocispec.AnnotationTitle]] = blob(t, files, layer)
	}
	want := map[string]string{
		"SHA256SUMS": "", "install.yaml": "kind: Namespace\n", "dra-driver-numa_" + version + ".spdx.json": `{"spdxVersion": "SPDX-2.3"}`,
		"kubectl-numa_" + version + "_linux_amd64.tar.gz": "plugin for amd64", "kubectl-numa_" + version + "_linux_arm64.tar.gz": "plugin for arm64",
	}
	if !maps.Equal(texts, want) || manifest.ArtifactType != typeFiles || !maps.Equal(manifest.Annotations, labels) {
		t.Errorf("files %q, type %s, annotations %q", texts, manifest.ArtifactType, manifest.Annotations)
	}
}

func TestPushTwiceChangesNothing(t *testing.T) {
	where := start(t)
	folder := written(t, where)
	first := pushed(t, folder, where)
	if lines := strings.Fields(first); len(lines) != 4 || !strings.HasPrefix(lines[0], where+"/dra-driver-numa:"+version+"@sha256:") {
		t.Errorf("it prints\n%s", first)
	}
	if again := pushed(t, written(t, where), where); again != first {
		t.Errorf("a second build of the same is\n%s, the first was\n%s", again, first)
	}
	// Another registry gets the same, but for the chart.
	changed := 0
	elsewhere := start(t)
	for i, line := range strings.Fields(pushed(t, written(t, elsewhere), elsewhere)) {
		if line != strings.ReplaceAll(strings.Fields(first)[i], where, elsewhere) {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("%d names lead to something else in another registry, want only the chart", changed)
	}
}

// Nothing is uploaded: a version that clusters run stays as it is.
func TestPublishedVersionIsNotReplaced(t *testing.T) {
	where := start(t)
	folder := written(t, where)
	first := pushed(t, folder, where)
	write(t, filepath.Join(folder, "install.yaml"), "kind: Other\n")
	err := run(t.Context(), folder, version, where, io.Discard)
	if want := "push " + where + "/files/dra-driver-numa:" + version + ": it is published as "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Fatalf("error %v, want %s…", err, want)
	}
	write(t, filepath.Join(folder, "install.yaml"), "kind: Namespace\n")
	if again := pushed(t, folder, where); again != first {
		t.Errorf("it is now\n%s, and was\n%s", again, first)
	}
}

func TestWhatIsNoReleaseIsRefused(t *testing.T) {
	where := start(t)
	folder := written(t, where)
	for version, want := range map[string]string{"v9.9.9": "there are none: make release VERSION=v9.9.9 writes them", "*": "not found"} {
		if err := run(t.Context(), folder, version, where, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("version %s: error %v, want %s", version, err, want)
		}
	}
	for key, want := range map[string]string{ocispec.AnnotationRevision: "they are not of one build", ocispec.AnnotationVersion: "want the version " + version} {
		other := maps.Clone(labels)
		other[key] = "other"
		writeImage(t, folder, "arm64", other)
		if err := run(t.Context(), folder, version, where, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("another %s: error %v, want %s", key, err, want)
		}
	}
	writeImage(t, folder, "arm64", labels)
	if err := os.Remove(filepath.Join(folder, project+"-"+version[1:]+".tgz")); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), folder, version, where, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "read chart ") {
		t.Errorf("without a chart: error %v", err)
	}
}

func TestOnlyRegistriesOfThisMachineAreWithoutTLS(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "registry.example": false, "10.0.0.1:5000": false, "localhost.example:443": false} {
		if got := onThisMachine(host); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
	for text, want := range map[string]bool{"registry.example/team": true, "127.0.0.1:5000/a/b": true, "registry.example": true, "https://registry.example": false, "registry.example/": false, "": false, "registry.example/Team": false} {
		if got := registryFormat.MatchString(text); got != want {
			t.Errorf("%q is a registry: %t", text, got)
		}
	}
}
