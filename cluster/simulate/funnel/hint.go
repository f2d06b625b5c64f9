package funnel

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/internal/attribute"
)

// countHint gives a hint for shared devices: a larger count does not give more of one
// device.
func countHint(f *funnel) string {
	if f.wanted < 2 || f.Mode == resourceapi.DeviceAllocationModeAll || !slices.ContainsFunc(f.left, (*inventory.Device).Shared) {
		return ""
	}
	return fmt.Sprintf("count: %[1]d asks for %[1]d different devices; to get more of one device, ask for more of its capacity", f.wanted)
}

// missingAttributeHint looks for an attribute with the same name in another domain.
func missingAttributeHint(name resourceapi.FullyQualifiedName, f *funnel) string {
	_, short, _ := strings.Cut(string(name), "/")
	similar := make(map[string]bool)
	for _, d := range f.left {
		for has := range d.Attributes {
			full := string(attribute.FullName(d.Slice.Spec.Driver, has))
			if strings.HasSuffix(full, "/"+short) {
				similar[full] = true
			}
		}
	}
	if len(similar) > 0 {
		return fmt.Sprintf("the devices have %s: match an attribute that all devices have", strings.Join(sortedNames(similar), ", "))
	}
	return fmt.Sprintf("a device without %s never meets a matchAttribute of it: remove the request from the constraint", name)
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
