package evict

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// This file follows the eviction API of Kubernetes 1.37
// (pkg/registry/core/pod/storage/eviction.go).

// Protected is a pod that would be considered, but that the eviction API refuses to
// evict now, or whose controller would create it again with the same claim.
type Protected struct {
	Pod string `json:"pod"` // namespace/name
	// Budgets are the names of the PodDisruptionBudgets that protect the pod, sorted.
	Budgets []string `json:"budgets"`
	Why     string   `json:"why"` // comes after the name of the pod
}

// budgetsOf returns the PodDisruptionBudgets that the eviction API looks at for the pod.
func budgetsOf(s *snapshot.Snapshot, pod *corev1.Pod) (list []*policyv1.PodDisruptionBudget) {
	if pod.Status.Phase == corev1.PodPending {
		return nil // a pod that has never run is not healthy, so no budget counts it
	}
	for _, budget := range s.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			list = append(list, budget)
		}
	}
	if len(list) == 1 && ignores(list[0], pod) {
		return nil
	}
	return list
}

// ignores reports whether the budget lets the pod go because it is not ready.
func ignores(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	}) {
		return false
	}
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

// allowed returns how many pods of the budget may be evicted now. A budget whose status is
// not up to date allows none.
func allowed(budget *policyv1.PodDisruptionBudget) int {
	if budget.Status.ObservedGeneration < budget.Generation {
		return 0
	}
	return int(budget.Status.DisruptionsAllowed)
}

// protect returns the budget that limits how many pods like this one can be evicted, or
// nil. why is not "" if the pod cannot be evicted at all.
func protect(budgets []*policyv1.PodDisruptionBudget) (limit *policyv1.PodDisruptionBudget, why string) {
	switch {
	case len(budgets) > 1:
		return nil, fmt.Sprintf("has %d PodDisruptionBudgets, and the API server evicts no pod with more than one: %s", len(budgets), strings.Join(namesOf(budgets), ", "))
	case len(budgets) == 1 && allowed(budgets[0]) < 1:
		return nil, fmt.Sprintf("PodDisruptionBudget %s allows no disruption", budgets[0].Name)
	case len(budgets) == 1:
		return budgets[0], ""
	}
	return nil, ""
}

func namesOf(budgets []*policyv1.PodDisruptionBudget) (names []string) {
	for _, budget := range budgets {
		names = append(names, budget.Name)
	}
	slices.Sort(names)
	return names
}

// within returns the victims without those that are too many for their budgets. The first
// victims remain.
func within(victims []*victim) (left []*victim) {
	used := make(map[*policyv1.PodDisruptionBudget]int)
	for _, v := range victims {
		if v.budget != nil {
			if used[v.budget] >= allowed(v.budget) {
				continue
			}
			used[v.budget]++
		}
		left = append(left, v)
	}
	return left
}

// areWithin reports whether the budgets allow to evict all of these.
func areWithin(victims []*victim) bool { return len(within(victims)) == len(victims) }
