package webhook

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// operation is an operation of a JSON patch (RFC 6902). Adding an existing value replaces
// it.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// annotationPath is the annotation's, with the slash escaped (RFC 6901).
const annotationPath = "/metadata/annotations/dra.numa~1mirrored"

// patch changes the pod into the mirrored one. It touches only requests, limits and the
// annotation, so that fields that this program does not know are kept.
func patch(before, after *corev1.Pod) (operations []operation) {
	set := func(path string, value any) { operations = append(operations, operation{"add", path, value}) }
	requirements := func(path string, old, now corev1.ResourceRequirements) {
		if !sameAmounts(old.Requests, now.Requests) {
			set(path+"/requests", now.Requests)
		}
		if !sameAmounts(old.Limits, now.Limits) {
			set(path+"/limits", now.Limits)
		}
	}
	for _, list := range []struct {
		path     string
		old, now []corev1.Container
	}{
		{"/spec/initContainers", before.Spec.InitContainers, after.Spec.InitContainers},
		{"/spec/containers", before.Spec.Containers, after.Spec.Containers},
	} {
		for i := range list.now {
			requirements(fmt.Sprintf("%s/%d/resources", list.path, i), list.old[i].Resources, list.now[i].Resources)
		}
	}
	if own := after.Spec.Resources; own != nil {
		requirements("/spec/resources", *before.Spec.Resources, *own)
	}
	if before.Annotations == nil {
		set("/metadata/annotations", map[string]string{accounting.Annotation: after.Annotations[accounting.Annotation]})
	} else {
		set(annotationPath, after.Annotations[accounting.Annotation])
	}
	return operations
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}
