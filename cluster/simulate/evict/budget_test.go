package evict

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// budget is a PodDisruptionBudget for the pods of an app.
func budget(name, app string, allowed int) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Generation: 2},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DisruptionsAllowed: int32(allowed), CurrentHealthy: 1, DesiredHealthy: 2},
	}
}

// withBudgets labels the pods, which are ready, as parts of app a.
func withBudgets(budgets ...*policyv1.PodDisruptionBudget) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for _, pod := range s.Pods {
			pod.Labels = map[string]string{"app": "a"}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		s.Budgets = budgets
	}
}

// Each pod takes half of the node. Of a budget that allows nothing, no pod is suggested.
func TestBudgetsDecideWhichPodsMayGo(t *testing.T) {
	for name, row := range map[string]struct {
		change    func(*snapshot.Snapshot)
		protected string // why
	}{
		"none":                  {withBudgets(), ""},
		"allows one":            {withBudgets(budget("pdb", "a", 1)), ""},
		"allows none":           {withBudgets(budget("pdb", "a", 0)), "PodDisruptionBudget pdb allows no disruption"},
		"of another app":        {withBudgets(budget("pdb", "b", 0)), ""},
		"of another namespace":  {elsewhere, ""},
		"with an old status":    {outdated, "PodDisruptionBudget pdb allows no disruption"},
		"two budgets":           {withBudgets(budget("z", "a", 1), budget("y", "a", 1)), "has 2 PodDisruptionBudgets, and the API server evicts no pod with more than one: y, z"},
		"a pod that never ran":  {unready(corev1.PodPending, nil, 0), ""},
		"unready, few healthy":  {unready(corev1.PodRunning, nil, 0), "PodDisruptionBudget pdb allows no disruption"},
		"unready, many healthy": {unready(corev1.PodRunning, nil, 2), ""},
		"unready, may go":       {unready(corev1.PodRunning, ptr.To(policyv1.AlwaysAllow), 0), ""},
	} {
		got := suggest(t, Options{}, row.change, objects(1, 4), podOf("v", 1, 6, ""), podOf("p", 9, 4, ""))
		if row.protected == "" {
			want(t, got, "n0", Exact, "v", "the pod fits on n0 if 1 pod is deleted")
			continue
		}
		want(t, got, "", "", "", "no eviction helps: the pod fits on no node even if all running pods with a priority below 9 are deleted that no PodDisruptionBudget protects")
		if len(got.Protected) != 1 || got.Protected[0].Pod != "default/v" || got.Protected[0].Why != row.protected {
			t.Errorf("%s: protected are %+v, want v: %s", name, got.Protected, row.protected)
		}
	}
}

func elsewhere(s *snapshot.Snapshot) {
	withBudgets(budget("pdb", "a", 0))(s)
	s.Budgets[0].Namespace = "other"
}

func outdated(s *snapshot.Snapshot) {
	withBudgets(budget("pdb", "a", 1))(s)
	s.Budgets[0].Status.ObservedGeneration = 1
}

func unready(phase corev1.PodPhase, policy *policyv1.UnhealthyPodEvictionPolicyType, healthy int32) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		withBudgets(budget("pdb", "a", 0))(s)
		s.Budgets[0].Spec.UnhealthyPodEvictionPolicy, s.Budgets[0].Status.CurrentHealthy = policy, healthy
		for _, pod := range s.Pods {
			pod.Status = corev1.PodStatus{Phase: phase}
		}
	}
}

// The budget allows one of two pods that both have to go. With a third pod of another app,
// two of different budgets go.
func TestSetsAreWithinTheirBudgets(t *testing.T) {
	small := []string{objects(1, 4), podOf("v0", 1, 2, ""), podOf("v1", 1, 2, ""), podOf("w", 5, 2, ""), podOf("p", 9, 6, "")}
	got := suggest(t, Options{}, func(s *snapshot.Snapshot) {
		withBudgets(budget("pdb", "a", 1))(s)
		s.Pod("default", "w").Labels = nil
	}, small...)
	if len(got.Evictions) != 2 || !strings.Contains(got.Evictions[0].Pod+got.Evictions[1].Pod, "default/w") || got.Method != Exact {
		t.Errorf("suggested %+v, want one of the budget, and w", got)
	}
	got = suggest(t, Options{}, withBudgets(budget("pdb", "a", 1)), small...)
	want(t, got, "", "", "", "no eviction helps: no pods were found that are enough and that their PodDisruptionBudgets allow to delete at the same time")
}

// The greedy search drops pods until the budget is kept.
func TestLargeSetsAreWithinTheirBudgets(t *testing.T) {
	manifests := []string{objects(1, 4), podOf("p", 9, 5, "")}
	for _, name := range []string{"a0", "a1", "a2", "b0", "b1", "b2", "b3", "b4"} {
		manifests = append(manifests, podOf(name, int(name[0]-'a'), 1, ""))
	}
	got := suggest(t, Options{}, func(s *snapshot.Snapshot) {
		withBudgets(budget("pdb", "a", 1))(s)
		for _, pod := range s.Pods {
			pod.Labels = map[string]string{"app": pod.Name[:1]}
		}
	}, manifests...)
	want(t, got, "n0", Greedy, "a0 b0 b1 b2 b3", "none of these can stay")
}
