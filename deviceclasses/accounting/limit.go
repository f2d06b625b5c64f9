package accounting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxPairs is how many amounts of claims, times containers, a pod may have: far more than
// pods that a node can run. An API server accepts pods with a thousand times as many.
const maxPairs = 1 << 16

// TooLarge reports whether it would take long to compare the pod's requests with the
// shares: Mirror looks at every share for every container.
func TooLarge(pod *corev1.Pod, shares []Share) bool {
	amounts := 0
	for _, share := range shares {
		amounts += len(share.Amounts)
	}
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	refs := 0
	for _, container := range containers {
		refs += len(container.Resources.Claims)
	}
	return amounts*max(len(containers), refs) > maxPairs
}
