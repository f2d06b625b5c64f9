package diagnosis

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// differences are breakages of zones that say something else than others, or than any zone
// can.
func differences() []broken {
	return []broken{
		{
			"zones of which one is mapped", func(f *Facts) {
				f.zone().NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {}}
			},
			"n1 | zones-differ | dra.numa | nodeAllocatableResources of zones | some, as on other nodes: the webhook counts claims until all zones have them | none",
		},
		{
			"a step that no core has", func(f *Facts) {
				f.zone().Capacity["cpu"] = resourceapi.DeviceCapacity{Value: resource.MustParse("4M"), RequestPolicy: &resourceapi.CapacityRequestPolicy{
					ValidRange: &resourceapi.CapacityRequestPolicyRange{Step: ptr.To(resource.MustParse("1M"))},
				}}
			},
			"n1 | zones-differ | device numa-0 | step of cpu | at most 8: the webhook takes it for that | 1M",
		},
	}
}
