package ledger

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PinnedUsers returns the names of the pod's containers that the grant should pin.
func (g Grant) PinnedUsers(pod *corev1.Pod) (containers []string) {
	names := ClaimNames(pod)
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

// ClaimNames maps the names in the pod's spec.resourceClaims to the names of the
// claims. If a claim was made from a template, its name is in the pod's status.
func ClaimNames(pod *corev1.Pod) map[string]string {
	names := make(map[string]string)
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimName != nil {
			names[entry.Name] = *entry.ResourceClaimName
		}
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.ResourceClaimName != nil {
			names[made.Name] = *made.ResourceClaimName
		}
	}
	return names
}
