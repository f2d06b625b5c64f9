package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/content/oci"
	"oras.land/oras-go/v2/errdef"
	"sigs.k8s.io/yaml"
)

const (
	project = "dra-driver-numa"

	// Media types of a chart, as package registry of Helm 4 has them.
	typeChartConfig = "application/vnd.cncf.helm.config.v1+json"
	typeChart       = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

	typeSBOM  = "application/spdx+json"
	typeFiles = "application/vnd.dra-driver-numa.files.v1" // the artifact that has all other files
	typeFile  = "application/octet-stream"
)

// release is what is to be in a registry.
type release struct {
	version     string
	store       *memory.Store
	annotations map[string]string // of the image: version, commit, time
	artifacts   []artifact        // in the order in which they have to be pushed
}

// artifact is what a name in the registry leads to.
type artifact struct {
	repository string // below the registry
	tag        string // "" for what is attached to the image
	root       ocispec.Descriptor
}

// read reads the folder of a release.
func read(ctx context.Context, folder, version string) (*release, error) {
	r := &release{version: version, store: memory.New()}
	images, err := filepath.Glob(filepath.Join(folder, project+"-image_"+version+"_linux_*.tar"))
	if err != nil {
		return nil, err
	}
	chart := filepath.Join(folder, project+"-"+strings.TrimPrefix(version, "v")+".tgz")
	index, err := r.addImages(ctx, images)
	if err != nil {
		return nil, fmt.Errorf("read images of %s %s: %w", folder, version, err)
	}
	if err := r.addChart(ctx, chart); err != nil {
		return nil, fmt.Errorf("read chart %s: %w", chart, err)
	}
	if err := r.addFiles(ctx, folder, append(images, chart), index); err != nil {
		return nil, fmt.Errorf("read files of %s: %w", folder, err)
	}
	return r, nil
}

// addImages adds an index of the images in archives. Its annotations are theirs.
func (r *release) addImages(ctx context.Context, archives []string) (ocispec.Descriptor, error) {
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, archive := range archives {
		layout, err := oci.NewFromTar(ctx, archive)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		image, err := layout.Resolve(ctx, r.version)
		if err != nil {
			return ocispec.Descriptor{}, fmt.Errorf("%s: %w", archive, err)
		}
		if err := oras.CopyGraph(ctx, layout, r.store, image, oras.DefaultCopyGraphOptions); err != nil {
			return ocispec.Descriptor{}, err
		}
		manifest, err := fetch[ocispec.Manifest](ctx, r.store, image)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		config, err := fetch[ocispec.Image](ctx, r.store, manifest.Config)
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		switch r.annotations = manifest.Annotations; {
		case r.annotations[ocispec.AnnotationVersion] != r.version || r.annotations[ocispec.AnnotationCreated] == "":
			return ocispec.Descriptor{}, fmt.Errorf("%s has the annotations %q, want the version %s and a time", archive, r.annotations, r.version)
		case index.Annotations != nil && !maps.Equal(index.Annotations, r.annotations):
			return ocispec.Descriptor{}, fmt.Errorf("%s has annotations %q, and another image %q: they are not of one build", archive, r.annotations, index.Annotations)
		}
		index.Annotations = r.annotations
		platform := ocispec.Platform{Architecture: config.Architecture, OS: config.OS}
		index.Manifests = append(index.Manifests, ocispec.Descriptor{MediaType: image.MediaType, Digest: image.Digest, Size: image.Size, Platform: &platform})
	}
	if len(index.Manifests) == 0 {
		return ocispec.Descriptor{}, fmt.Errorf("there are none: make release VERSION=%s writes them", r.version)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	root, err := r.add(ctx, ocispec.MediaTypeImageIndex, text)
	r.artifacts = append(r.artifacts, artifact{project, r.version, root})
	return root, err
}

// add adds a blob or a manifest.
func (r *release) add(ctx context.Context, mediaType string, text []byte) (ocispec.Descriptor, error) {
	d := content.NewDescriptorFromBytes(mediaType, text)
	err := r.store.Push(ctx, d, bytes.NewReader(text))
	if errors.Is(err, errdef.ErrAlreadyExists) { // two files with the same content
		err = nil
	}
	return d, err
}

func fetch[T any](ctx context.Context, from content.Fetcher, d ocispec.Descriptor) (value T, err error) {
	text, err := content.FetchAll(ctx, from, d)
	if err != nil {
		return value, err
	}
	return value, json.Unmarshal(text, &value)
}

// addChart adds the package of a chart as helm push would.
func (r *release) addChart(ctx context.Context, path string) error {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return err
	}
	metadata, err := chartMetadata(text)
	if err != nil {
		return err
	}
	var described struct{ Name, Version, Description, Home string }
	if err := json.Unmarshal(metadata, &described); err != nil {
		return err
	}
	layer, err := r.add(ctx, typeChart, text)
	if err != nil {
		return err
	}
	config, err := r.add(ctx, typeChartConfig, metadata)
	if err != nil {
		return err
	}
	annotations := maps.Clone(r.annotations)
	annotations[ocispec.AnnotationTitle] = described.Name
	annotations[ocispec.AnnotationVersion] = described.Version
	annotations[ocispec.AnnotationDescription] = described.Description
	annotations[ocispec.AnnotationURL] = described.Home
	root, err := oras.PackManifest(ctx, r.store, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: annotations,
	})
	r.artifacts = append(r.artifacts, artifact{"charts/" + described.Name, described.Version, root})
	return err
}

// chartMetadata returns Chart.yaml of a package as JSON.
func chartMetadata(archive []byte) ([]byte, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("find Chart.yaml: %w", err)
		}
		if header.Name != project+"/Chart.yaml" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, err
		}
		return yaml.YAMLToJSON(text)
	}
}

// addFiles adds all files of the folder but some as one artifact. What is an SBOM is also attached
// to the image, where tools look for it.
func (r *release) addFiles(ctx context.Context, folder string, but []string, image ocispec.Descriptor) error {
	entries, err := os.ReadDir(folder) // in the order of names
	if err != nil {
		return err
	}
	skip := map[string]bool{}
	for _, path := range but {
		skip[filepath.Base(path)] = true
	}
	var layers []ocispec.Descriptor
	for _, entry := range entries {
		if skip[entry.Name()] {
			continue
		}
		layer, err := r.addFile(ctx, filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		layers = append(layers, layer)
		if layer.MediaType != typeSBOM {
			continue
		}
		attached, err := oras.PackManifest(ctx, r.store, oras.PackManifestVersion1_1, typeSBOM, oras.PackManifestOptions{
			Subject: &image, Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: r.annotations,
		})
		if err != nil {
			return err
		}
		r.artifacts = append(r.artifacts, artifact{project, "", attached})
	}
	root, err := oras.PackManifest(ctx, r.store, oras.PackManifestVersion1_1, typeFiles, oras.PackManifestOptions{
		Layers: layers, ManifestAnnotations: r.annotations,
	})
	r.artifacts = append(r.artifacts, artifact{"files/" + project, r.version, root})
	return err
}

// addFile adds a file under its name, by which oras pull writes it.
func (r *release) addFile(ctx context.Context, path string) (ocispec.Descriptor, error) {
	text, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	mediaType := typeFile
	if strings.HasSuffix(path, ".spdx.json") {
		mediaType = typeSBOM
	}
	layer, err := r.add(ctx, mediaType, text)
	layer.Annotations = map[string]string{ocispec.AnnotationTitle: filepath.Base(path)}
	return layer, err
}
