package kubeletplugin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// maxPods bounds how many pods are read for one claim. It matters whether there are
// several pods, not how many.
const maxPods = 8

// readPods reads the pods that the claim is reserved for, and leaves out pods that are
// gone.
func readPods(ctx context.Context, client kubernetes.Interface, claim *resourceapi.ResourceClaim) ([]*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	var pods []*corev1.Pod
	for _, consumer := range consumers(claim) {
		if len(pods) == maxPods {
			break
		}
		pod, err := client.CoreV1().Pods(claim.Namespace).Get(ctx, consumer.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && pod.UID != consumer.UID {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read pod %s/%s, which the claim is reserved for: %w", claim.Namespace, consumer.Name, err)
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// consumers returns the pods that the claim is reserved for.
func consumers(claim *resourceapi.ResourceClaim) (pods []resourceapi.ResourceClaimConsumerReference) {
	for _, consumer := range claim.Status.ReservedFor {
		if consumer.APIGroup == "" && consumer.Resource == "pods" {
			pods = append(pods, consumer)
		}
	}
	return pods
}

// podNames returns the names of pods that the claim is reserved for, at most maxPods.
func podNames(claim *resourceapi.ResourceClaim) (names []string) {
	for _, consumer := range consumers(claim) {
		if len(names) == maxPods {
			break
		}
		names = append(names, consumer.Name)
	}
	return names
}
