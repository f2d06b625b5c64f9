package quota

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	helpers "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

// pod makes up a pod that uses some of the claims, as an API server stores it.
func (n *node) pod(r random, name string, claims []string) *corev1.Pod {
	for {
		if pod := n.anyPod(r, name, claims); valid(pod) {
			return pod
		}
	}
}

func (n *node) anyPod(r random, name string, claims []string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
	for i, claim := range claims {
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("c%d", i), ResourceClaimName: ptr.To(claim)})
	}
	container := func(name string) corev1.Container {
		one := corev1.Container{Name: name, Resources: n.requirements(r, 30)}
		for _, entry := range pod.Spec.ResourceClaims {
			if r.chance(50) {
				one.Resources.Claims = append(one.Resources.Claims, corev1.ResourceClaim{Name: entry.Name, Request: pick(r, "", "", "r0", "r1")})
			}
		}
		return one
	}
	for i := range weighted(r, []choice[int]{{60, 0}, {30, 1}, {10, 2}}) {
		next := container(fmt.Sprintf("i%d", i))
		if r.chance(50) {
			next.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, next)
	}
	for i := range weighted(r, []choice[int]{{50, 1}, {40, 2}, {10, 3}}) {
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprintf("a%d", i)))
	}
	if r.chance(40) {
		pod.Spec.Resources = ptr.To(n.requirements(r, 30))
	}
	if r.chance(5) {
		pod.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: quantity("2")}
	}
	setDefaults(pod)
	return pod
}

// requirements are requests, and limits with a chance.
func (n *node) requirements(r random, limited int) (of corev1.ResourceRequirements) {
	set := func(list *corev1.ResourceList, name corev1.ResourceName, amount string) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = quantity(amount)
	}
	for name, amounts := range map[corev1.ResourceName][]string{
		corev1.ResourceCPU: {"100m", "1", "1", "4", "8", "24", "64"}, corev1.ResourceMemory: {"1Mi", "1Gi", "4Gi", "100Gi"},
	} {
		if r.chance(50) {
			set(&of.Requests, name, pick(r, amounts...))
		}
		if r.chance(limited) {
			set(&of.Limits, name, pick(r, amounts...))
		}
	}
	if r.chance(1) {
		set(&of.Requests, corev1.ResourceCPU, pick(r, "18446744073709551716m", "9223372036854775807", "9223372036854775808"))
	}
	for _, name := range n.hugepages {
		if r.chance(15) {
			page := corev1.ResourceName(corev1.ResourceHugePagesPrefix + string(name)[len("hugepages"):])
			set(&of.Requests, page, "1Gi")
			set(&of.Limits, page, "1Gi")
		}
	}
	return of
}

// setDefaults sets what an API server sets: a request that is not there is the limit. The
// pod's own is the sum of its containers' requests, if they have any.
func setDefaults(pod *corev1.Pod) {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			setRequests(&list[i].Resources, list[i].Resources.Limits)
		}
	}
	own := pod.Spec.Resources
	if own == nil {
		return
	}
	if !helpers.IsPodLevelResourcesSet(pod) {
		pod.Spec.Resources = nil
		return
	}
	setRequests(own, helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{}))
	setRequests(own, own.Limits)
}

func setRequests(of *corev1.ResourceRequirements, missing corev1.ResourceList) {
	for name, amount := range missing {
		if _, said := of.Requests[name]; said {
			continue
		}
		if of.Requests == nil {
			of.Requests = corev1.ResourceList{}
		}
		of.Requests[name] = amount
	}
}

// valid reports whether an API server accepts the amounts of the pod: no request is above
// the limit, and what the pod itself requests is not less than what its containers do.
func valid(pod *corev1.Pod) bool {
	within := func(amounts, most corev1.ResourceList) bool {
		for name, amount := range amounts {
			if limit, limited := most[name]; limited && amount.Cmp(limit) > 0 {
				return false
			}
		}
		return true
	}
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	for _, container := range containers {
		if !within(container.Resources.Requests, container.Resources.Limits) {
			return false
		}
	}
	own := pod.Spec.Resources
	if own == nil {
		return true
	}
	for _, container := range containers {
		if !within(container.Resources.Limits, own.Limits) {
			return false
		}
	}
	return within(own.Requests, own.Limits) && within(helpers.AggregateContainerRequests(pod, helpers.PodResourcesOptions{}), own.Requests)
}
