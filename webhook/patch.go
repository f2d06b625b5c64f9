package webhook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// operation is an operation of a JSON patch (RFC 6902). Adding an existing value replaces
// it.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// patch changes a pod into one that is mirrored or translated. It touches only requests,
// limits, claims and annotations, so that fields that this program does not know are kept.
func patch(before, after *corev1.Pod) (operations []operation) {
	set := func(path string, value any) { operations = append(operations, operation{"add", path, value}) }
	requirements := func(path string, old, now corev1.ResourceRequirements) {
		if !sameAmounts(old.Requests, now.Requests) {
			set(path+"/requests", now.Requests)
		}
		if !sameAmounts(old.Limits, now.Limits) {
			set(path+"/limits", now.Limits)
		}
		if !slices.Equal(old.Claims, now.Claims) {
			set(path+"/claims", now.Claims)
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
	if len(before.Spec.ResourceClaims) != len(after.Spec.ResourceClaims) {
		set("/spec/resourceClaims", after.Spec.ResourceClaims)
	}
	for _, name := range slices.Sorted(maps.Keys(after.Annotations)) {
		switch old, has := before.Annotations[name]; {
		case before.Annotations == nil:
			set("/metadata/annotations", after.Annotations)
			return operations
		case !has || old != after.Annotations[name]:
			set("/metadata/annotations/"+escape.Replace(name), after.Annotations[name])
		}
	}
	return operations
}

// escape escapes a part of a path (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}
