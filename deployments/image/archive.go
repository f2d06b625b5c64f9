package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Media types and annotations of the OCI image specification 1.1, and the
// annotation by which containerd learns the full name of an imported image.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"

	annotationRef  = "org.opencontainers.image.ref.name"
	annotationName = "io.containerd.image.name"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	SizeBytes   int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageConfig struct {
	Architecture string        `json:"architecture"`
	OS           string        `json:"os"`
	Config       runtimeConfig `json:"config"`
	RootFS       rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	Env        []string
	Entrypoint []string `json:",omitempty"`
	StopSignal string   `json:",omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// dockerImage is the entry of manifest.json in a docker archive.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// renderArchive returns the image around its one layer. Readers that know the OCI layout
// follow index.json; older ones follow manifest.json to the same blobs.
func renderArchive(c config, layer []byte) ([]byte, error) {
	var a archive
	layerBlob := a.blob(typeLayer, layer)
	configBlob := a.blob(typeConfig, a.json(imageConfig{
		Architecture: c.arch,
		OS:           "linux",
		Config:       runtimeConfig{Env: []string{"PATH=/bin:/"}, Entrypoint: c.entrypoint, StopSignal: c.stopSignal},
		RootFS:       rootFS{Type: "layers", DiffIDs: []string{layerBlob.Digest}}, // uncompressed: digest and diff id agree
	}))
	manifestBlob := a.blob(typeManifest, a.json(manifest{
		SchemaVersion: 2,
		MediaType:     typeManifest,
		Config:        configBlob,
		Layers:        []descriptor{layerBlob},
	}))
	manifestBlob.Annotations = map[string]string{annotationRef: tagOf(c.ref), annotationName: c.ref}
	a.file("index.json", a.json(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{manifestBlob}}))
	a.file("manifest.json", a.json([]dockerImage{{
		Config:   blobName(configBlob.Digest),
		RepoTags: []string{c.ref},
		Layers:   []string{blobName(layerBlob.Digest)},
	}}))
	a.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	return a.render()
}

// archive collects the files of the outer tar in the order they were added.
type archive struct {
	names    []string
	contents [][]byte
	err      error // first error, reported by render
}

func (a *archive) file(name string, content []byte) {
	a.names = append(a.names, name)
	a.contents = append(a.contents, content)
}

func (a *archive) blob(mediaType string, content []byte) descriptor {
	sum := sha256.Sum256(content)
	d := descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), SizeBytes: len(content)}
	a.file(blobName(d.Digest), content)
	return d
}

func (a *archive) json(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil && a.err == nil {
		a.err = err
	}
	return text
}

func (a *archive) render() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i, name := range a.names {
		if err := writeRegular(w, name, 0o644, a.contents[i]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func blobName(digest string) string {
	return "blobs/sha256/" + digest[len("sha256:"):]
}
