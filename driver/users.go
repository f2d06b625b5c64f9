package driver

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PinnedUsers returns the names of the pod's containers that the grant should pin.
func (g Grant) PinnedUsers(pod *corev1.Pod) (containers []string) {
	names := claimNames(pod)
	uses := func(ref corev1.ResourceClaim) bool {
		return names[ref.Name] == g.Name && slices.ContainsFunc(g.Shares, func(share Share) bool {
			main, _, _ := strings.Cut(share.Request, "/")
			return share.Pinned() && (ref.Request == "" || ref.Request == main)
		})
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if slices.ContainsFunc(container.Resources.Claims, uses) {
			containers = append(containers, container.Name)
		}
	}
	return containers
}
