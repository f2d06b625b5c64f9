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

// countHint is about shared devices: more of one is no count.
func countHint(f *funnel) string {
	if f.wanted < 2 || f.Mode == resourceapi.DeviceAllocationModeAll || !slices.ContainsFunc(f.left, (*inventory.Device).Shared) {
		return ""
	}
	return fmt.Sprintf("count: %d asks for as many different devices; for more of one device, ask for more of its capacity", f.wanted)
}

// withoutAttribute finds an attribute that means the same under another domain.
func withoutAttribute(name resourceapi.FullyQualifiedName, f *funnel) string {
	_, short, _ := strings.Cut(string(name), "/")
	similar := make(map[string]bool)
	for _, d := range f.left {
		for has := range d.Attributes {
			full := string(has)
			if !strings.Contains(full, "/") {
				full = d.Slice.Spec.Driver + "/" + full
			}
			if strings.HasSuffix(full, "/"+short) {
				similar[full] = true
			}
		}
	}
	if len(similar) > 0 {
		return fmt.Sprintf("they have %s: match in an attribute that all devices have", strings.Join(sortedNames(similar), ", "))
	}
	return fmt.Sprintf("a device without %s meets no matchAttribute in it: leave its request out of the constraint", name)
}

// InitHint is about claims of init containers, or "": a pod's claims are all held from its start to its end.
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
	return fmt.Sprintf("claims of init containers add up with all others of the pod; let init containers use the main containers' claim instead of %s", strings.Join(only, ", "))
}
