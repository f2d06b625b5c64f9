package kubeletplugin

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
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

// readStarting is readPods for a claim that is being prepared. If the claim is reserved for one
// pod, the API server may answer from its watch cache, without asking etcd: the pod is what the
// scheduler bound, and the kubelet knows it already. What the cache has is old if it does not
// show that, and then the pod is read as usual. So are several pods, because their phases
// decide who shares a claim.
//
// A claim that is reserved for something else is an error: without its pods, nobody knows which
// containers share it, which quotas to lift, and whom to tell of faults.
func readStarting(ctx context.Context, client kubernetes.Interface, claim *resourceapi.ResourceClaim) ([]*corev1.Pod, error) {
	pods := consumers(claim)
	for _, consumer := range claim.Status.ReservedFor {
		if !slices.Contains(pods, consumer) {
			// A daemon may read pods by name only, and cannot ask which pods a PodGroup has.
			return nil, fmt.Errorf("the claim is reserved for %s %s, whose pods the driver does not know: name the claim in pods only", consumer.Resource, consumer.Name)
		}
	}
	if len(pods) == 1 {
		ctx, cancel := context.WithTimeout(ctx, claimTimeout)
		defer cancel()
		pod, err := client.CoreV1().Pods(claim.Namespace).Get(ctx, pods[0].Name, metav1.GetOptions{ResourceVersion: "0"})
		if err == nil && pod.UID == pods[0].UID && pod.Spec.NodeName != "" && uses(pod, claim.Name) {
			return []*corev1.Pod{pod}, nil
		}
	}
	return readPods(ctx, client, claim)
}

// uses reports whether the pod names the claim. Claims made from a template are named in its
// status.
func uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return ptr.Deref(c.ResourceClaimName, "") == claim }) ||
		slices.ContainsFunc(pod.Status.ResourceClaimStatuses, func(c corev1.PodResourceClaimStatus) bool {
			return ptr.Deref(c.ResourceClaimName, "") == claim
		})
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
