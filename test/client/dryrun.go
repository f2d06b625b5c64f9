package client

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DryRun asks the API server whether it would create the objects of a manifest, which name
// their namespaces. It makes all checks of a creation, and unknown fields are errors, but
// nothing is stored. The answers, nil for an object that would be created, are by kind,
// namespace and name.
func (c *Cluster) DryRun(ctx context.Context, manifest []byte) (answers map[string]error, err error) {
	objects, err := decode(manifest)
	if err != nil {
		return nil, err
	}
	answers = map[string]error{}
	for _, object := range objects {
		kind := object.GroupVersionKind()
		name := fmt.Sprintf("%s %s/%s", kind.Kind, object.GetNamespace(), object.GetName())
		mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			answers[name] = err
			continue
		}
		namespace := object.GetNamespace()
		if mapping.Scope.Name() == meta.RESTScopeNameRoot {
			namespace = ""
		}
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		_, answers[name] = c.dynamic.Resource(mapping.Resource).Namespace(namespace).Create(ctx, object, options)
	}
	return answers, nil
}
