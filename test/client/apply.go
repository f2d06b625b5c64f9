package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "dra-driver-numa-test"

// Apply applies every object of every *.yaml file in the root of manifests, those that
// are namespaced to a namespace that exists, server-side: a second call changes nothing.
func (c *Cluster) Apply(ctx context.Context, manifests fs.FS, namespace string) error {
	names, err := fs.Glob(manifests, "*.yaml")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errors.New("apply manifests: the folder has no *.yaml")
	}
	for _, name := range names {
		data, err := fs.ReadFile(manifests, name)
		if err != nil {
			return err
		}
		objects, err := decode(data)
		if err != nil {
			return fmt.Errorf("decode %s: %w", name, err)
		}
		for _, object := range objects {
			if err := c.applyObject(ctx, object, namespace); err != nil {
				return fmt.Errorf("apply %s %q of %s: %w", object.GetKind(), object.GetName(), name, err)
			}
		}
	}
	return nil
}

func (c *Cluster) applyObject(ctx context.Context, object *unstructured.Unstructured, namespace string) error {
	kind := object.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	object.SetNamespace(namespace)
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err = c.dynamic.Resource(mapping.Resource).Namespace(namespace).Apply(ctx, object.GetName(), object, options)
	return err
}

// decode splits a YAML stream into its objects.
func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 { // nothing between two separators
			objects = append(objects, object)
		}
	}
}
