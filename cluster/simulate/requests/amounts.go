// Package requests evaluates what a pod requests, as the scheduler does: amounts of a
// node's resources, and devices through the requests of its claims. It also makes the
// claims that Kubernetes would make for the pod. It does not know nodes or devices.
package requests

import (
	"maps"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Amounts are what a node has or a pod requests, in the units of the scheduler: cpu in
// thousandths, everything else in whole units.
type Amounts map[corev1.ResourceName]int64

// LargestAmount is the largest amount of a capacity that still fits into 64 bits when
// it is rounded and counted in thousandths.
const LargestAmount = math.MaxInt64 / 1_000_000

// Count converts a list, and omits resources that the scheduler ignores.
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

// Waiting returns what a pod without a node needs (NodeResourcesFit). This is the sum
// of its main containers and sidecars or, if that is more, one init container with the
// sidecars before it. The overhead is added.
func Waiting(pod *corev1.Pod) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// Running returns what a pod takes from its node. It considers the status of a pod that
// is being resized. With withClaims, it includes what the pod's claims take of the
// node's own resources.
func Running(pod *corev1.Pod, withClaims bool) Amounts {
	return Count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseDRANodeAllocatableResourceClaimStatus:       withClaims,
		UseStatusResources:                             true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
}

// Scored returns how much cpu and memory a pod on a node counts for the scores of the node.
// This is more than Running for containers that do not request them
// (NonZeroRequested of the scheduler).
func Scored(pod *corev1.Pod, withClaims bool) Amounts {
	options := resourcehelper.PodResourcesOptions{
		UseDRANodeAllocatableResourceClaimStatus:       withClaims,
		UseStatusResources:                             true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}
	defaults := scoredDefaults()
	if resourcehelper.IsPodLevelRequestsSet(pod) {
		asked := resourcehelper.PodRequests(pod, options)
		maps.DeleteFunc(defaults, func(name corev1.ResourceName, _ resource.Quantity) bool { _, set := asked[name]; return set })
	}
	return scored(pod, options, defaults)
}

// ScoredWaiting returns the same as Scored, for a pod without a node
// (calculatePodResourceRequest of NodeResourcesFit).
func ScoredWaiting(pod *corev1.Pod) Amounts {
	return scored(pod, resourcehelper.PodResourcesOptions{}, scoredDefaults())
}

func scored(pod *corev1.Pod, options resourcehelper.PodResourcesOptions, defaults corev1.ResourceList) Amounts {
	options.NonMissingContainerRequests = defaults
	list := resourcehelper.PodRequests(pod, options)
	return Amounts{corev1.ResourceCPU: list.Cpu().MilliValue(), corev1.ResourceMemory: list.Memory().Value()}
}

// scoredDefaults returns what a container without requests counts.
func scoredDefaults() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(200<<20, resource.BinarySI),
	}
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

// Text returns an amount in the form of a manifest.
func Text(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return spelling.Text(*resource.NewMilliQuantity(amount, resource.DecimalSI))
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return spelling.Text(*resource.NewQuantity(amount, resource.DecimalSI))
}
