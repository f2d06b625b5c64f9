package drift

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
)

// running returns a pod on this node with a running container that uses one of the
// claim's requests, as namespace/name. It returns "" if there is none. If requests is
// nil, all requests count. While no container runs, the claim need not be in the
// checkpoint, because it may still be being prepared.
func (c *comparison) running(claim *resourceapi.ResourceClaim, requests []string) (pod string) {
	for _, user := range claim.Status.ReservedFor {
		if user.APIGroup != "" || user.Resource != "pods" {
			continue
		}
		pod := c.objects.pod(claim.Namespace, user.Name)
		if pod != nil && pod.UID == user.UID && pod.Spec.NodeName == c.node && pod.DeletionTimestamp == nil && runs(pod, claim.Name, requests) {
			return pod.Namespace + "/" + pod.Name
		}
	}
	return ""
}

// runs reports whether a running container uses one of the claim's requests.
func runs(pod *corev1.Pod, claim string, requests []string) bool {
	entries := entriesFor(pod, claim)
	running := make(map[string]bool)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		running[status.Name] = status.State.Running != nil
	}
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(container corev1.Container) bool {
		return running[container.Name] && slices.ContainsFunc(container.Resources.Claims, func(ref corev1.ResourceClaim) bool {
			return entries[ref.Name] && (ref.Request == "" || requests == nil || slices.Contains(requests, ref.Request))
		})
	})
}

// entriesFor returns the pod's entries for a claim.
func entriesFor(pod *corev1.Pod, claim string) map[string]bool {
	entries := make(map[string]bool)
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		entries[pod.Spec.ResourceClaims[i].Name] = err == nil && name != nil && *name == claim
	}
	return entries
}

func name(claim *resourceapi.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }
