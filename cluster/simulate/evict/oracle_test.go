package evict

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// random is a cluster with a few pods, and p, which waits.
func random(t *testing.T, seed uint64) *snapshot.Snapshot {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	text := objects(1+r.IntN(2), 2+r.IntN(3)) + claimOf("ResourceClaim", "shared", cpus(1+r.IntN(2))) + claimOf("ResourceClaim", "other", cpus(1))
	for i := range 4 + r.IntN(4) {
		name, entry := fmt.Sprintf("v%d", i), ""
		switch r.IntN(6) {
		case 0:
		case 1:
			entry = "resourceClaimName: shared"
		case 2:
			entry = "resourceClaimName: other"
		case 3:
			var template string
			template, entry = own(name, device)
			text += template
		default:
			var template string
			template, entry = own(name, cpus(1+r.IntN(2)))
			text += template
		}
		text += podOf(name, r.IntN(3)*5, 1+r.IntN(2), entry)
	}
	entry := []string{"", "resourceClaimName: shared", "resourceClaimTemplateName: p", "resourceClaimTemplateName: p", "resourceClaimTemplateName: p"}[r.IntN(5)]
	requests := []string{cpus(1 + r.IntN(4)), cpus(1) + ", " + device, device}[r.IntN(3)]
	text += claimOf("ResourceClaimTemplate", "p", requests) + podOf("p", 8, 2+r.IntN(6), entry)
	s := started(t, read(t, text))
	budgeted(s, rand.New(rand.NewPCG(seed, 2)))
	return s
}

// budgeted adds PodDisruptionBudgets to every second cluster.
func budgeted(s *snapshot.Snapshot, r *rand.Rand) {
	if r.IntN(2) == 0 {
		return
	}
	for _, pod := range s.Pods {
		pod.Labels = map[string]string{"app": []string{"a", "b", "c"}[r.IntN(3)]}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	for i, app := range []string{"a", "b", "b"}[:2+r.IntN(20)/19] {
		s.Budgets = append(s.Budgets, budget(fmt.Sprint(i), app, r.IntN(3)))
	}
}

// permitted reports whether the eviction API would evict all of these pods, one after the
// other.
func permitted(s *snapshot.Snapshot, pods []*corev1.Pod) bool {
	budgets := make(map[string]int)
	used := make(map[string]int)
	for _, budget := range s.Budgets {
		budgets[budget.Spec.Selector.MatchLabels["app"]]++
	}
	for _, pod := range pods {
		app := pod.Labels["app"]
		if used[app]++; budgets[app] > 1 {
			return false
		}
		for _, budget := range s.Budgets {
			if budget.Spec.Selector.MatchLabels["app"] == app && used[app] > int(budget.Status.DisruptionsAllowed) {
				return false
			}
		}
	}
	return true
}

// without is the snapshot after the pods were deleted. This oracle does not use Evict.
func without(s *snapshot.Snapshot, deleted []*corev1.Pod) *snapshot.Snapshot {
	after := *s
	after.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(pod *corev1.Pod) bool { return slices.Contains(deleted, pod) })
	after.Claims = nil
	for _, claim := range s.Claims {
		claim = claim.DeepCopy()
		used := len(claim.Status.ReservedFor) > 0
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool {
			return slices.ContainsFunc(deleted, func(pod *corev1.Pod) bool { return pod.UID == user.UID })
		})
		if used && len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
		after.Claims = append(after.Claims, claim)
	}
	return &after
}

func places(t *testing.T, s *snapshot.Snapshot, deleted []*corev1.Pod) bool {
	t.Helper()
	after := without(s, deleted)
	placement, err := clusterOf(t, after).Place(t.Context(), after.Pod("default", "p"), simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return placement.Node != ""
}

// prioritiesOf are sorted, the highest first.
func prioritiesOf(pods []*corev1.Pod) (list []int32) {
	for _, pod := range pods {
		list = append(list, *pod.Spec.Priority)
	}
	slices.SortFunc(list, func(a, b int32) int { return cmp.Compare(b, a) })
	return list
}

// smallestOf tries all sets. The priorities are those of the best sets.
func smallestOf(t *testing.T, s *snapshot.Snapshot) (size int, priorities []int32) {
	t.Helper()
	var lower []*corev1.Pod
	for _, pod := range s.Pods {
		if *pod.Spec.Priority < *s.Pod("default", "p").Spec.Priority {
			lower = append(lower, pod)
		}
	}
	size = -1
	for bits := range 1 << len(lower) {
		var pods []*corev1.Pod
		for i, pod := range lower {
			if bits&(1<<i) != 0 {
				pods = append(pods, pod)
			}
		}
		if size >= 0 && len(pods) > size || !permitted(s, pods) || !places(t, s, pods) {
			continue
		}
		if found := prioritiesOf(pods); len(pods) < size || size < 0 || slices.Compare(found, priorities) < 0 {
			size, priorities = len(pods), found
		}
	}
	return size, priorities
}

// No set is smaller or has lower priorities, and no pod of the suggested set can stay.
// The cluster is unchanged afterwards.
func TestSuggestionIsTheSmallestSet(t *testing.T) {
	sizes := make(map[int]int)
	for seed := range uint64(200) {
		s := random(t, seed)
		c := clusterOf(t, s)
		pod := s.Pod("default", "p")
		got, err := Suggest(t.Context(), c, s, pod, Options{})
		if err != nil {
			t.Fatal(err)
		}
		size, priorities := smallestOf(t, s)
		sizes[size]++
		var pods []*corev1.Pod
		for _, e := range got.Evictions {
			pods = append(pods, s.Pod("default", strings.TrimPrefix(e.Pod, "default/")))
		}
		if !permitted(s, pods) {
			t.Errorf("seed %d: %+v is more than the budgets allow", seed, got)
		}
		switch {
		case size > maxExact+1 && got.Node == "" && len(s.Budgets) > 0: // the greedy search did not find it
		case size < 0:
			if got.Node != "" || len(pods) > 0 || got.Method != "" || !strings.HasPrefix(got.Sentence, "no eviction helps: ") {
				t.Errorf("seed %d: %+v, but nothing helps", seed, got)
			}
		case size > maxExact+1:
			if got.Method != Greedy || len(pods) < size || !places(t, s, pods) {
				t.Errorf("seed %d: %+v, want a greedy set of %d or more", seed, got, size)
			}
			for i := range pods {
				if places(t, s, slices.Delete(slices.Clone(pods), i, i+1)) {
					t.Errorf("seed %d: %+v, of which pod %d can stay", seed, got, i)
				}
			}
		case len(pods) != size || got.Node == "" || !gocmp.Equal(prioritiesOf(pods), priorities):
			t.Errorf("seed %d: %+v, want %d pods of priorities %v", seed, got, size, priorities)
		case !places(t, s, pods):
			t.Errorf("seed %d: %+v does not place the pod", seed, got)
		case size > 0 && got.Method != Exact:
			t.Errorf("seed %d: %+v is not called exact", seed, got)
		}
		again, err := Suggest(t.Context(), c, s, pod, Options{})
		if err != nil || !gocmp.Equal(got, again) {
			t.Errorf("seed %d: asked again %v\n%s", seed, err, gocmp.Diff(got, again))
		}
	}
	t.Logf("sizes: %v", sizes)
	for size := -1; size <= maxExact; size++ {
		if sizes[size] < 5 {
			t.Errorf("only %d clusters need %d evictions: they are too much alike", sizes[size], size)
		}
	}
}
