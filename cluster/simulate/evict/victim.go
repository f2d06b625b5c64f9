package evict

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// victim is a pod that may be deleted.
type victim struct {
	*corev1.Pod
	priority int32
	claims   []*resourceapi.ResourceClaim // reserved for the pod, sorted by name
	// budget limits how many pods may be deleted at the same time; nil is no limit.
	budget *policyv1.PodDisruptionBudget
}

// victims returns the running pods of lower priority, the best ones to delete first:
// pods with low priority, then pods with few claims, then new pods. It leaves out those
// that a PodDisruptionBudget protects, and those that come back with their claims.
func victims(s *snapshot.Snapshot, pod *corev1.Pod) (list []*victim, protected []Protected) {
	claims := make(map[types.UID][]*resourceapi.ResourceClaim)
	for _, claim := range s.Claims {
		for _, user := range claim.Status.ReservedFor {
			claims[user.UID] = append(claims[user.UID], claim)
		}
	}
	for _, other := range s.Pods {
		runs := other.Spec.NodeName != "" && !snapshot.Finished(other) && other.DeletionTimestamp == nil
		if !runs || priorityOf(other) >= priorityOf(pod) || comesBack(other) {
			continue
		}
		if claims := returns(other); claims != "" {
			protected = append(protected, Protected{other.Namespace + "/" + other.Name, []string{}, claims})
			continue
		}
		budgets := budgetsOf(s, other)
		limit, why := protect(budgets)
		if why != "" {
			protected = append(protected, Protected{other.Namespace + "/" + other.Name, namesOf(budgets), why})
			continue
		}
		list = append(list, &victim{other, priorityOf(other), claims[other.UID], limit})
	}
	slices.SortFunc(protected, func(a, b Protected) int { return cmp.Compare(a.Pod, b.Pod) })
	slices.SortStableFunc(list, func(a, b *victim) int {
		return cmp.Or(
			cmp.Compare(a.priority, b.priority), cmp.Compare(len(a.claims), len(b.claims)), b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
	return list, protected
}

// priorityOf returns the priority of a pod. The default is 0.
func priorityOf(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}

// comesBack reports whether a DaemonSet or the kubelet would create the pod on the same
// node again.
func comesBack(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == "DaemonSet" || owner.Kind == "Node"
	})
}

// returns says which controller would create the pod again with a claim that it names. The
// new pod takes the same claim, so nothing becomes free for long. It returns "" for other
// pods: a claim from a template goes with its pod.
func returns(pod *corev1.Pod) string {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return ""
	}
	for _, entry := range pod.Spec.ResourceClaims {
		if entry.ResourceClaimName != nil {
			return fmt.Sprintf("%s %s would create it again, with the same ResourceClaim %s: scale it down instead", controller.Kind, controller.Name, *entry.ResourceClaimName)
		}
	}
	return ""
}

// set is a list of pods whose deletion gives the waiting pod a node.
type set struct {
	node    string
	victims []*victim
}

// compare returns a negative number if a is the better set to delete. The pods of both
// sets are in the order of victims.
func (a *set) compare(b *set) int {
	byPriority := func(a, b *victim) int { return cmp.Compare(a.priority, b.priority) }
	byAge := func(a, b *victim) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) }
	byName := func(a, b *victim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	return cmp.Or(
		cmp.Compare(len(a.victims), len(b.victims)),
		slices.CompareFunc(sorted(a.victims, byPriority), sorted(b.victims, byPriority), byPriority),
		cmp.Compare(a.claims(), b.claims()),
		slices.CompareFunc(sorted(a.victims, byAge), sorted(b.victims, byAge), byAge),
		cmp.Compare(a.node, b.node),
		slices.CompareFunc(a.victims, b.victims, byName),
	)
}

// sorted returns the list, the largest first.
func sorted(list []*victim, compare func(a, b *victim) int) []*victim {
	return slices.SortedStableFunc(slices.Values(list), func(a, b *victim) int { return compare(b, a) })
}

func (a *set) claims() (count int) {
	for _, v := range a.victims {
		count += len(v.claims)
	}
	return count
}

func (a *set) evictions() (list []Eviction) {
	for _, v := range a.victims {
		e := Eviction{Pod: v.Namespace + "/" + v.Name, Node: v.Spec.NodeName, Priority: v.priority}
		for _, claim := range v.claims {
			e.Claims = append(e.Claims, claim.Name)
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Eviction) int { return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Pod, b.Pod)) })
	return list
}
