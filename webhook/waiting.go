package webhook

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// Limits of the pods that are read. Which claims a pod names is in its spec, so metadata
// says too little; but tenants can make pods of a megabyte. So few are read at a time, and
// only one page in the whole program.
const (
	podsOfPage = 32
	mostPages  = 128
	// mostPodBytes is how much of a pod is kept, in the encoding of protobuf: names, claims
	// and amounts. A container needs about 200 bytes.
	mostPodBytes = 32 << 10
)

// errTooMuchWaits means that more waits than is read.
var errTooMuchWaits = errors.New("too much waits in the namespace")

// Waiting implements Known. It asks the API server: a watch of all pods would cost more
// memory than everything else, and would be late.
func (r reviewLookups) Waiting(namespace, name string, each func(*corev1.Pod) (more bool)) error {
	selected := fields.Set{"status.phase": string(corev1.PodPending)}
	if name != "" {
		selected["metadata.name"] = name
	}
	options := metav1.ListOptions{FieldSelector: selected.String(), Limit: podsOfPage}
	for range mostPages {
		pods, next, err := r.page(namespace, options)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if !each(pod) {
				return nil
			}
		}
		if options.Continue = next; next == "" {
			return nil
		}
	}
	return fmt.Errorf("%w: more than %d pods", errTooMuchWaits, podsOfPage*mostPages)
}

// page returns what counts of the pods of a page that name claims.
func (r reviewLookups) page(namespace string, options metav1.ListOptions) (pods []*corev1.Pod, next string, err error) {
	select {
	case r.pages <- struct{}{}:
		defer func() { <-r.pages }()
	case <-r.ctx.Done():
		return nil, "", r.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(r.ctx, getTimeout)
	defer cancel()
	list, err := r.client.CoreV1().Pods(namespace).List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if len(pod.Spec.ResourceClaims) == 0 {
			continue
		}
		kept := countedPart(pod)
		if size := kept.Size(); size > mostPodBytes {
			return nil, "", fmt.Errorf("%w: pod %q has %d bytes of claims and amounts, allowed are %d", errTooMuchWaits, pod.Name, size, mostPodBytes)
		}
		pods = append(pods, kept.DeepCopy()) // which holds nothing of the list
	}
	return pods, list.Continue, nil
}

// countedPart is what package accounting reads of a pod that waits.
func countedPart(pod *corev1.Pod) *corev1.Pod {
	part := &corev1.Pod{}
	part.Namespace, part.Name, part.UID, part.DeletionTimestamp = pod.Namespace, pod.Name, pod.UID, pod.DeletionTimestamp
	part.Spec.ResourceClaims, part.Spec.SchedulingGroup = pod.Spec.ResourceClaims, pod.Spec.SchedulingGroup
	part.Spec.Overhead, part.Spec.Resources = pod.Spec.Overhead, pod.Spec.Resources
	part.Spec.InitContainers, part.Spec.Containers = countedParts(pod.Spec.InitContainers), countedParts(pod.Spec.Containers)
	part.Status.ResourceClaimStatuses = pod.Status.ResourceClaimStatuses
	part.Status.NodeAllocatableResourceClaimStatuses = pod.Status.NodeAllocatableResourceClaimStatuses
	return part
}

func countedParts(containers []corev1.Container) (parts []corev1.Container) {
	for _, container := range containers {
		parts = append(parts, corev1.Container{Name: container.Name, Resources: container.Resources, RestartPolicy: container.RestartPolicy})
	}
	return parts
}
