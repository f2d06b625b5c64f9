package snapshot

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
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
		return newExplaining(meta), nil
	}
	if meta.APIVersion != version {
		return nil, fmt.Errorf("%s of apiVersion %q, allowed is %s", meta.Kind, meta.APIVersion, version)
	}
	return object, nil
}

// newExplaining returns an empty object of a kind that does not change placements but
// explains why pods do not start, or nil. Other groups may have kinds of the same names.
func newExplaining(meta metav1.TypeMeta) metav1.Object {
	switch meta.APIVersion + " " + meta.Kind {
	case "v1 Event":
		return &corev1.Event{}
	case "apps/v1 Deployment":
		return &appsv1.Deployment{}
	case "apps/v1 ReplicaSet":
		return &appsv1.ReplicaSet{}
	case "apps/v1 StatefulSet":
		return &appsv1.StatefulSet{}
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "batch/v1 Job":
		return &batchv1.Job{}
	}
	return nil
}

// Kind returns the kind of an object of a snapshot.
func Kind(object metav1.Object) string { return kindOf(object) }

func kindOf(object metav1.Object) string {
	switch object.(type) {
	case *corev1.Event:
		return "Event"
	case *appsv1.Deployment:
		return "Deployment"
	case *appsv1.ReplicaSet:
		return "ReplicaSet"
	case *appsv1.StatefulSet:
		return "StatefulSet"
	case *appsv1.DaemonSet:
		return "DaemonSet"
	case *batchv1.Job:
		return "Job"
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
	case *corev1.Node, *resourceapi.DeviceClass, *resourceapi.ResourceSlice, *resourceapi.DeviceTaintRule:
		return false
	}
	return true
}
