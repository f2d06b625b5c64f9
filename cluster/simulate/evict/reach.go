package evict

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// reach says which pods make a difference on other nodes if they are deleted.
type reach struct {
	namespace string
	shared    map[pool]bool   // pools with devices that more than one node may see
	claims    map[string]bool // names of the claims that the waiting pod uses
}

type pool struct{ driver, name string }

func newReach(s *snapshot.Snapshot, pod *corev1.Pod) reach {
	r := reach{pod.Namespace, make(map[pool]bool), make(map[string]bool)}
	nodes := make(map[pool]string)
	for _, slice := range s.Slices {
		id, node := pool{slice.Spec.Driver, slice.Spec.Pool.Name}, ptr.Deref(slice.Spec.NodeName, "")
		if first, seen := nodes[id]; node == "" || seen && first != node {
			r.shared[id] = true
		}
		nodes[id] = node
	}
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimName != nil {
			r.claims[*entry.ResourceClaimName] = true
		}
	}
	return r
}

// everywhere reports whether the pod holds a device that several nodes can see, or uses a
// claim of the waiting pod.
func (r reach) everywhere(v *victim) bool {
	return slices.ContainsFunc(v.claims, func(claim *resourceapi.ResourceClaim) bool {
		if claim.Namespace == r.namespace && r.claims[claim.Name] {
			return true
		}
		return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
			func(result resourceapi.DeviceRequestAllocationResult) bool {
				return r.shared[pool{result.Driver, result.Pool}]
			})
	})
}
