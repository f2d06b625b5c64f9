package requests

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// WithClaims returns the same as Waiting, for a pod whose status says what its claims
// take of the node's own resources.
func WithClaims(pod *corev1.Pod) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true}))
}

// PodLevelShortage says which pod-level request or limit is less than the pod's
// containers and their claims need, or returns "". It mirrors
// validatePodLevelResourcesCoverDRA of the scheduler.
func PodLevelShortage(pod *corev1.Pod) string {
	if pod.Spec.Resources == nil {
		return ""
	}
	whole := *pod.Spec.Resources
	sum := resourcehelper.PodResourcesOptions{SkipPodLevelResources: true, UseDRANodeAllocatableResourceClaimStatus: true}
	asked, limits := resourcehelper.AggregateContainerRequests(pod, sum), resourcehelper.AggregateContainerLimits(pod, sum)
	for _, name := range slices.Sorted(maps.Keys(whole.Requests)) {
		all, wants := asked[name]
		if have := whole.Requests[name]; wants && resourcehelper.IsSupportedPodLevelResource(name) && all.Cmp(have) > 0 {
			return fmt.Sprintf("the pod-level request is %s %s, but its containers and their claims need %s", name, have.String(), all.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(whole.Limits)) {
		have := whole.Limits[name]
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			if all := limits[name]; all.Cmp(have) > 0 {
				return fmt.Sprintf("the pod-level limit is %s %s, but its containers and their claims need %s", name, have.String(), all.String())
			}
			continue
		}
		for _, container := range pod.Spec.Containers {
			limit, limited := container.Resources.Limits[name]
			limit = limit.DeepCopy()
			limit.Add(resourcehelper.GetContainerDRAAllocations(pod, container.Name)[name])
			if limited && limit.Cmp(have) > 0 {
				return fmt.Sprintf("the pod-level limit is %s %s, but its container %s and the container's claims need %s", name, have.String(), container.Name, limit.String())
			}
		}
	}
	return ""
}
