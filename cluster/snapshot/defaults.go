package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// This file sets the defaults of an API server of Kubernetes 1.37, as far as they
// change placements: pkg/apis/core/v1/defaults.go, pkg/apis/resource/v1/defaults.go.

func defaultNode(node *corev1.Node) {
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
}

func defaultPod(pod *corev1.Pod) {
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources)
		}
	}
}

// defaultRequests sets a missing request to the limit.
func defaultRequests(resources *corev1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, asked := resources.Requests[name]; asked {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = make(corev1.ResourceList)
		}
		resources.Requests[name] = limit.DeepCopy()
	}
}

func defaultClaim(spec *resourceapi.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			defaultCount(&request.Exactly.AllocationMode, &request.Exactly.Count)
		}
		for j := range request.FirstAvailable {
			defaultCount(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
		}
	}
}

func defaultCount(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}
