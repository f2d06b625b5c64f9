package simulate

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Objects returns the claims of pods with their allocations, and the pods with their nodes, as
// the scheduler would leave them: each claim once, before its first pod. A snapshot takes them
// in place of the objects from which they were made; see [snapshot.AnnotationPlaced].
func (c *Cluster) Objects(pods []Placed) (list []metav1.Object) {
	seen := make(map[string]bool)
	for _, placed := range pods {
		pod := placed.pod.DeepCopy()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod"}
		pod.Spec.NodeName = placed.Node
		pod.Status.ResourceClaimStatuses = nil
		for _, used := range placed.Claims {
			key := keyOf(pod)
			key.Name = used.Name
			if used.PodClaim != "" && !isNamed(pod, used.PodClaim) {
				pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: used.PodClaim, ResourceClaimName: &used.Name})
			}
			if seen[key.String()] {
				continue
			}
			seen[key.String()] = true
			claim := c.claims[key].DeepCopy() // as its last pod left it
			claim.TypeMeta = metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaim"}
			list = append(list, mark(claim))
		}
		list = append(list, mark(pod))
	}
	return list
}

// isNamed reports whether an entry of the pod names a claim. Others name templates.
func isNamed(pod *corev1.Pod, entry string) bool {
	for _, used := range pod.Spec.ResourceClaims {
		if used.Name == entry {
			return used.ResourceClaimName != nil
		}
	}
	return false
}

func mark(object metav1.Object) metav1.Object {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = make(map[string]string)
	}
	annotations[snapshot.AnnotationPlaced] = "true"
	object.SetAnnotations(annotations)
	return object
}
