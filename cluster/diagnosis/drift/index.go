package drift

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// Objects are the claims and pods of a cluster, indexed once for the comparisons of all its
// nodes.
type Objects struct {
	claims map[types.UID]*resourceapi.ResourceClaim
	named  map[types.NamespacedName]*resourceapi.ResourceClaim
	onNode map[string][]*resourceapi.ResourceClaim // claims with devices of this driver, by node
	pods   map[types.NamespacedName]*corev1.Pod
}

// Index returns the objects of a snapshot.
func Index(s *snapshot.Snapshot) *Objects {
	o := &Objects{
		make(map[types.UID]*resourceapi.ResourceClaim, len(s.Claims)), make(map[types.NamespacedName]*resourceapi.ResourceClaim, len(s.Claims)),
		make(map[string][]*resourceapi.ResourceClaim), make(map[types.NamespacedName]*corev1.Pod, len(s.Pods)),
	}
	for _, claim := range s.Claims {
		o.claims[claim.UID] = claim
		o.named[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
		for _, node := range nodesOf(claim) {
			o.onNode[node] = append(o.onNode[node], claim)
		}
	}
	for _, pod := range s.Pods {
		o.pods[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = pod
	}
	return o
}

// nodesOf returns the nodes on which the claim has devices of this driver: their pools have
// the names of the nodes. Devices of one claim are on one node.
func nodesOf(claim *resourceapi.ResourceClaim) (nodes []string) {
	if claim.Status.Allocation == nil {
		return nil
	}
	seen := make(map[string]bool)
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver == driver.Name && !seen[result.Pool] {
			seen[result.Pool] = true
			nodes = append(nodes, result.Pool)
		}
	}
	return nodes
}

// pod returns the pod, or nil.
func (o *Objects) pod(namespace, name string) *corev1.Pod {
	return o.pods[types.NamespacedName{Namespace: namespace, Name: name}]
}

// claim returns the claim, or nil.
func (o *Objects) claim(namespace, name string) *resourceapi.ResourceClaim {
	return o.named[types.NamespacedName{Namespace: namespace, Name: name}]
}
