package funnel

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
)

// countHint gives a hint for shared devices: a larger count does not give more of one
// device.
func countHint(f *funnel) string {
	if f.wanted < 2 || f.Mode == resourceapi.DeviceAllocationModeAll || !slices.ContainsFunc(f.left, (*inventory.Device).Shared) {
		return ""
	}
	return fmt.Sprintf("count: %[1]d asks for %[1]d different devices; to get more of one device, ask for more of its capacity", f.wanted)
}

// InitHint gives a hint about claims that only init containers use, or "". A pod holds
// all its claims from its start to its end.
func InitHint(pod *corev1.Pod) string {
	later := make(map[string]bool)
	for _, container := range pod.Spec.Containers {
		for _, claim := range container.Resources.Claims {
			later[claim.Name] = true
		}
	}
	var only []string
	for _, container := range pod.Spec.InitContainers {
		if ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			continue
		}
		for _, claim := range container.Resources.Claims {
			if !later[claim.Name] && !slices.Contains(only, claim.Name) {
				only = append(only, claim.Name)
			}
		}
	}
	if len(only) == 0 || len(pod.Spec.ResourceClaims) < 2 {
		return ""
	}
	return fmt.Sprintf("the pod holds the claims of its init containers in addition to its other claims; let the init containers use a claim of the main containers instead of %s", strings.Join(only, ", "))
}
