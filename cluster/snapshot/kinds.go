package snapshot

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newObject returns an empty object of the kind, or nil if a snapshot does not hold
// objects of the kind.
func newObject(meta metav1.TypeMeta) (metav1.Object, error) {
	version := resourceapi.SchemeGroupVersion.String()
	var object metav1.Object
	switch meta.Kind {
	case "Node":
		object, version = &corev1.Node{}, "v1"
	case "Pod":
		object, version = &corev1.Pod{}, "v1"
	case "DeviceClass":
		object = &resourceapi.DeviceClass{}
	case "ResourceSlice":
		object = &resourceapi.ResourceSlice{}
	case "ResourceClaim":
		object = &resourceapi.ResourceClaim{}
	case "ResourceClaimTemplate":
		object = &resourceapi.ResourceClaimTemplate{}
	case "DeviceTaintRule":
		object = &resourceapi.DeviceTaintRule{}
	default:
		return nil, nil
	}
	if meta.APIVersion != version {
		return nil, fmt.Errorf("%s of apiVersion %q, allowed is %s", meta.Kind, meta.APIVersion, version)
	}
	return object, nil
}

func kindOf(object metav1.Object) string {
	switch object.(type) {
	case *corev1.Node:
		return "Node"
	case *corev1.Pod:
		return "Pod"
	case *resourceapi.DeviceClass:
		return "DeviceClass"
	case *resourceapi.ResourceSlice:
		return "ResourceSlice"
	case *resourceapi.ResourceClaim:
		return "ResourceClaim"
	case *resourceapi.ResourceClaimTemplate:
		return "ResourceClaimTemplate"
	}
	return "DeviceTaintRule"
}

func namespaced(object metav1.Object) bool {
	switch object.(type) {
	case *corev1.Pod, *resourceapi.ResourceClaim, *resourceapi.ResourceClaimTemplate:
		return true
	}
	return false
}
