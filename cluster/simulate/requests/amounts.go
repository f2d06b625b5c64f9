// Package requests is what a pod requests, as the scheduler reads it: amounts of a node's
// resources, and devices through the requests of its claims. It also makes the claims that
// Kubernetes would make for the pod. It knows no node and no device.
package requests

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Amounts are what a node has or a pod requests, as the scheduler counts: cpu in
// thousandths, everything else in whole units.
type Amounts map[corev1.ResourceName]int64

// LargestAmount is the largest amount of a capacity for which rounding and thousandths
// still fit into 64 bits.
const LargestAmount = math.MaxInt64 / 1_000_000

// Count converts a list, without resources that the scheduler ignores.
func Count(list corev1.ResourceList) Amounts {
	counted := make(Amounts, len(list))
	for name, quantity := range list {
		switch {
		case name == corev1.ResourceCPU:
			counted[name] = quantity.MilliValue()
		case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, name == corev1.ResourcePods, isScalar(name):
			counted[name] = quantity.Value()
		}
	}
	return counted
}

// Waiting is what a pod without a node needs: its main containers and sidecars together,
// or one init container with the sidecars before it if that is more, and the overhead
// (NodeResourcesFit).
func Waiting(pod *corev1.Pod) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// Running is what a pod takes of its node. It includes what the status says while the pod
// is resized and, with withClaims, what its claims take of the node's own resources.
func Running(pod *corev1.Pod, withClaims bool) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseDRANodeAllocatableResourceClaimStatus:       withClaims,
		UseStatusResources:                             true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
}

// isScalar mirrors IsScalarResourceName of the scheduler.
func isScalar(name corev1.ResourceName) bool {
	return isExtended(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix)
}

// isExtended mirrors IsExtendedResourceName of the API.
func isExtended(name corev1.ResourceName) bool {
	text := string(name)
	if !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}

// Text is an amount as a manifest has it.
func Text(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}
