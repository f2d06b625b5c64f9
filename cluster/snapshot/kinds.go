package snapshot

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/dynamic-resource-allocation/api/v1beta1"
	"k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// version is a version of a kind that can be read.
type version struct {
	apiVersion string
	into       any // an empty object to decode into
	// object returns the decoded object, in the version that a snapshot holds.
	object func() (metav1.Object, error)
	// knows reports whether the field of a strict decoding error should be known; nil means
	// that all fields are.
	knows func(error) bool
}

// newObject returns an empty object of the kind. foreign reports that a snapshot does not
// hold objects of the kind. The kind of another API group can have the same name.
func newObject(meta metav1.TypeMeta) (v version, foreign bool, err error) {
	versions := versionsOf(meta.Kind)
	if len(versions) == 0 {
		return version{}, true, nil
	}
	if i := slices.IndexFunc(versions, func(v version) bool { return v.apiVersion == meta.APIVersion }); i >= 0 {
		return versions[i], false, nil
	}
	if group := groupOf(meta.APIVersion); group != "" && group != groupOf(versions[0].apiVersion) {
		return version{}, true, nil
	}
	allowed := "is " + versions[0].apiVersion
	if len(versions) > 1 {
		allowed = "are " + versions[0].apiVersion
		for _, v := range versions[1:] {
			allowed += ", " + v.apiVersion
		}
	}
	return version{}, false, fmt.Errorf("%s of apiVersion %q, allowed %s", meta.Kind, meta.APIVersion, allowed)
}

// groupOf returns the API group, which is "" for the core group.
func groupOf(apiVersion string) string {
	group, _, named := strings.Cut(apiVersion, "/")
	if !named {
		return ""
	}
	return group
}

// fullKind returns the kind with its API group, if that is not a group of Kubernetes.
func fullKind(meta metav1.TypeMeta) string {
	group := groupOf(meta.APIVersion)
	if !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		return meta.Kind
	}
	return meta.Kind + "." + group
}

// versionsOf returns the versions of a kind that a snapshot holds, the newest first.
func versionsOf(kind string) []version {
	switch kind {
	case "Node":
		return []version{as("v1", &corev1.Node{})}
	case "Pod":
		return []version{as("v1", &corev1.Pod{})}
	case "Event": // of the core group; those of events.k8s.io are the same objects
		return []version{as("v1", &corev1.Event{})}
	case "PodDisruptionBudget":
		return []version{as("policy/v1", &policyv1.PodDisruptionBudget{})}
	case "DeviceClass":
		return resource(&resourceapi.DeviceClass{}, v1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass, v1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass)
	case "ResourceSlice":
		return resource(&resourceapi.ResourceSlice{}, v1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice, v1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice)
	case "ResourceClaim":
		return resource(&resourceapi.ResourceClaim{}, v1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim, v1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim)
	case "ResourceClaimTemplate":
		return resource(&resourceapi.ResourceClaimTemplate{},
			v1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate, v1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case "DeviceTaintRule": // v1beta1 has none; Add converts them
		return []version{
			as(resourceapi.SchemeGroupVersion.String(), &resourceapi.DeviceTaintRule{}),
			as(resourcev1beta2.SchemeGroupVersion.String(), &resourcev1beta2.DeviceTaintRule{}),
			as(resourcev1alpha3.SchemeGroupVersion.String(), &resourcev1alpha3.DeviceTaintRule{}),
		}
	}
	return workloadVersions(kind)
}

// as returns a version that Add takes without a conversion.
func as(apiVersion string, object metav1.Object) version {
	return version{apiVersion, object, func() (metav1.Object, error) { return object, nil }, nil}
}

// convert fills an object from one of an older version.
type convert[Old, New any] func(*Old, New, conversion.Scope) error

func converted[Old any, New metav1.Object](apiVersion string, object New, convert convert[Old, New]) version {
	old := new(Old)
	return version{apiVersion, old, func() (metav1.Object, error) { return object, convert(old, object, nil) }, nil}
}

// resource returns the versions of a kind of resource.k8s.io.
func resource[Beta2, Beta1 any, New metav1.Object](object New, beta2 convert[Beta2, New], beta1 convert[Beta1, New]) []version {
	return []version{
		as(resourceapi.SchemeGroupVersion.String(), object),
		converted("resource.k8s.io/v1beta2", object, beta2),
		converted("resource.k8s.io/v1beta1", object, beta1),
	}
}

func workloadVersions(kind string) []version {
	var object metav1.Object
	var knows func(error) bool
	switch kind {
	case "ReplicationController":
		object = &corev1.ReplicationController{}
	case "Deployment":
		object = &appsv1.Deployment{}
	case "ReplicaSet":
		object = &appsv1.ReplicaSet{}
	case "StatefulSet":
		object = &appsv1.StatefulSet{}
	case DaemonSet:
		object = &appsv1.DaemonSet{}
	case "Job":
		object = &batchv1.Job{}
	case cronJob:
		object = &batchv1.CronJob{}
	case jobSetKind:
		object, knows = &jobSet{}, jobSetKnows
	default:
		return nil
	}
	return []version{{newWorkload(object).APIVersion, object, func() (metav1.Object, error) { return newWorkload(object), nil }, knows}}
}

// kindOf returns the kind of an object, which is the name of its Go type.
func kindOf(object metav1.Object) string {
	if workload, is := object.(*Workload); is {
		return workload.Kind
	}
	return reflect.TypeOf(object).Elem().Name()
}

func namespaced(object metav1.Object) bool {
	switch object.(type) {
	case *corev1.Pod, *corev1.Event, *policyv1.PodDisruptionBudget, *resourceapi.ResourceClaim, *resourceapi.ResourceClaimTemplate, *Workload:
		return true
	}
	return false
}
