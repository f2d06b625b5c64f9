package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/dra-driver-numa/dra-driver-numa/deployments/archive"
)

// Media types and annotations of the OCI image specification 1.1, and the
// annotation by which containerd learns the full name of an imported image.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
	typeGzip     = typeLayer + "+gzip"

	labelCreated   = "org.opencontainers.image.created" // as RFC 3339 has it
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
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type imageConfig struct {
	Created      string        `json:"created,omitempty"`
	Architecture string        `json:"architecture"`
	OS           string        `json:"os"`
	Config       runtimeConfig `json:"config"`
	RootFS       rootFS        `json:"rootfs"`
}

type runtimeConfig struct {
	Env        []string
	Entrypoint []string          `json:",omitempty"`
	StopSignal string            `json:",omitempty"`
	Labels     map[string]string `json:",omitempty"`
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
	var l layout
	diffID := digest(layer)
	mediaType := typeLayer
	if c.compress {
		mediaType = typeGzip
		layer, l.err = archive.Gzip(layer)
	}
	layerBlob := l.blob(mediaType, layer)
	configBlob := l.blob(typeConfig, l.json(imageConfig{
		Created:      c.labels[labelCreated],
		Architecture: c.arch,
		OS:           "linux",
		Config:       runtimeConfig{Env: []string{"PATH=/bin:/"}, Entrypoint: c.entrypoint, StopSignal: c.stopSignal, Labels: c.labels},
		RootFS:       rootFS{Type: "layers", DiffIDs: []string{diffID}},
	}))
	manifestBlob := l.blob(typeManifest, l.json(manifest{
		SchemaVersion: 2,
		MediaType:     typeManifest,
		Config:        configBlob,
		Layers:        []descriptor{layerBlob},
		Annotations:   c.labels,
	}))
	manifestBlob.Annotations = map[string]string{annotationRef: tagOf(c.ref), annotationName: c.ref}
	l.file("index.json", l.json(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{manifestBlob}}))
	l.file("manifest.json", l.json([]dockerImage{{
		Config:   blobName(configBlob.Digest),
		RepoTags: []string{c.ref},
		Layers:   []string{blobName(layerBlob.Digest)},
	}}))
	l.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	return l.render()
}

// layout collects the files of the outer tar in the order they were added.
type layout struct {
	files []archive.File
	err   error // first error, reported by render
}

func (l *layout) file(name string, content []byte) {
	l.files = append(l.files, archive.File{Name: name, Mode: 0o644, Content: content})
}

func (l *layout) blob(mediaType string, content []byte) descriptor {
	d := descriptor{MediaType: mediaType, Digest: digest(content), SizeBytes: len(content)}
	l.file(blobName(d.Digest), content)
	return d
}

func (l *layout) json(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil && l.err == nil {
		l.err = err
	}
	return text
}

func (l *layout) render() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, file := range l.files {
		if err := file.Write(w); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func blobName(digest string) string {
	return "blobs/sha256/" + digest[len("sha256:"):]
}
