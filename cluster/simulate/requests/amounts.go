// Package requests is what a pod asks for, as the scheduler reads it: amounts of
// a node's resources, and devices through the requests of its claims, with the
// claims that are made for it. It knows no node and no device.
package requests

import (
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Amounts are what a node has or a pod asks, in thousandths for cpu and in whole
// units for everything else, as the scheduler counts.
type Amounts map[corev1.ResourceName]int64

// LargestAmount of a capacity leaves room for rounding and for thousandths in 64
// bits.
const LargestAmount = math.MaxInt64 / 1_000_000

// Count leaves out what the scheduler does not look at.
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

// Waiting is what the scheduler wants to find for a pod without a node: the
// main containers and sidecars together, or one init container with the sidecars
// before it if that is more, and the overhead (NodeResourcesFit).
func Waiting(pod *corev1.Pod) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// Running is what a pod on a node takes of it: also what its status says while
// it is resized and, if that counts, of its claims.
func Running(pod *corev1.Pod, withClaims bool) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseDRANodeAllocatableResourceClaimStatus:       withClaims,
		UseStatusResources:                             true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
}

// isScalar and isExtended mirror the scheduler's IsScalarResourceName and the
// API's IsExtendedResourceName.
func isScalar(name corev1.ResourceName) bool {
	return isExtended(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix)
}

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
