package accounting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// taken returns what the scheduler counts for a pod on a node. While the pod is resized in
// place, that is the most of what the pod requests, what the kubelet has allocated to it,
// and what its containers run with. A request that is infeasible does not count.
func taken(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{
		UseDRANodeAllocatableResourceClaimStatus:       true,
		UseStatusResources:                             true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
}

// resized returns the pod as its resize leaves it. If the resize is infeasible, the pod
// keeps what the kubelet has allocated.
func resized(pod *corev1.Pod) *corev1.Pod {
	if !resource.IsPodResizeInfeasible(pod) {
		return pod
	}
	kept := pod.DeepCopy()
	allocated := make(map[string]corev1.ResourceList)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		allocated[status.Name] = status.AllocatedResources
	}
	for _, containers := range [][]corev1.Container{kept.Spec.InitContainers, kept.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = allocated[containers[i].Name]
		}
	}
	if kept.Spec.Resources != nil && pod.Status.Resources != nil {
		kept.Spec.Resources.Requests = pod.Status.AllocatedResources
	}
	return kept
}

// Lowers reports whether a resize lowers what the pod, or one of its containers, requests of
// a resource that claims can hold.
func Lowers(before, after *corev1.Pod) bool {
	if len(excess(requested(before), requested(after))) > 0 {
		return true
	}
	now := slices.Concat(after.Spec.InitContainers, after.Spec.Containers)
	for i, container := range slices.Concat(before.Spec.InitContainers, before.Spec.Containers) {
		if i >= len(now) || len(excess(container.Resources.Requests, now[i].Resources.Requests)) > 0 {
			return true
		}
	}
	return false
}

// lacking returns how much less the scheduler counts for a pod than it should: the
// requests, and what its claims hold in addition.
func lacking(pod *corev1.Pod, shares []Share, counts corev1.ResourceList) corev1.ResourceList {
	target := resized(pod)
	needs := requested(target)
	add(needs, Mirror(target, shares).Uncounted)
	return excess(needs, counts)
}
