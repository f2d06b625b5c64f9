package templates

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/kept"
)

// byTemplate is the index of pods by the template that they name.
const byTemplate = "template"

// mostPodBytes is how much of a pod is kept, in the encoding of protobuf: names, claims and
// amounts. A container needs about 200 bytes, and a tenant can make pods of a megabyte.
const mostPodBytes = 32 << 10

// mostTemplateBytes is how much of a template is kept, in the same encoding. That of a
// translation has less: lists of at most 32 items, with names of containers.
const mostTemplateBytes = 128 << 10

// unfinished selects the pods that may still need their claim.
const unfinished = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// newPods watches the pods that name a template of a translation. Which template a pod names
// never changes.
func newPods(client kubernetes.Interface) cache.SharedIndexInformer {
	return kept.NewInformer(client, client.CoreV1().Pods(metav1.NamespaceAll), &corev1.Pod{}, unfinished, keptPod, cache.Indexers{byTemplate: func(object any) ([]string, error) {
		pod := object.(*corev1.Pod)
		return []string{keyOf(pod.Namespace, translate.TemplateOf(pod))}, nil
	}})
}

// keptPod returns what is kept of a pod, or nil.
func keptPod(object runtime.Object) runtime.Object {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return object
	}
	if translate.TemplateOf(pod) == "" {
		return nil
	}
	part := translate.Part(pod)
	part.ResourceVersion = pod.ResourceVersion
	if part.Size() > mostPodBytes {
		part.Annotations, part.Spec.InitContainers, part.Spec.Containers = nil, nil, nil
	}
	return part
}

// newTemplates watches the templates with the names of translations, also those that somebody
// else has made.
func newTemplates(client kubernetes.Interface) cache.SharedIndexInformer {
	return kept.NewInformer(client, client.ResourceV1().ResourceClaimTemplates(metav1.NamespaceAll), &resourceapi.ResourceClaimTemplate{}, "", keptTemplate, cache.Indexers{})
}

// keptTemplate returns what is kept of a template, or nil. A large spec is not that of a
// translation, and is dropped: an empty one is not either.
func keptTemplate(object runtime.Object) runtime.Object {
	template, isTemplate := object.(*resourceapi.ResourceClaimTemplate)
	if !isTemplate {
		return object
	}
	if !translate.IsTemplateName(template.Name) {
		return nil
	}
	part := &resourceapi.ResourceClaimTemplate{}
	part.Namespace, part.Name, part.UID, part.ResourceVersion = template.Namespace, template.Name, template.UID, template.ResourceVersion
	part.DeletionTimestamp = template.DeletionTimestamp
	if value, has := template.Labels[Label]; has {
		part.Labels = map[string]string{Label: value}
	}
	if template.Spec.Size() <= mostTemplateBytes {
		part.Spec = template.Spec
	}
	return part
}
