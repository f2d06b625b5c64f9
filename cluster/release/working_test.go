package release

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func daemon(name, node string, ready corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func slice(node string, generation, count int64) resourceapi.ResourceSlice {
	return resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: count},
	}}
}

func TestUnreadySaysWhatIsMissing(t *testing.T) {
	ended := daemon("old", "n2", corev1.ConditionFalse)
	ended.DeletionTimestamp = &metav1.Time{}
	shared := resourceapi.ResourceSlice{} // of no node
	for name, row := range map[string]struct {
		pods   []corev1.Pod
		slices []resourceapi.ResourceSlice
		want   string
	}{
		"works": {
			[]corev1.Pod{daemon("a", "n1", corev1.ConditionTrue), daemon("b", "n2", corev1.ConditionTrue), ended},
			[]resourceapi.ResourceSlice{slice("n1", 1, 1), slice("n2", 3, 2), slice("n2", 3, 2), slice("n2", 2, 1), shared},
			"",
		},
		"no daemon":           {[]corev1.Pod{ended}, nil, "no daemon runs: look at the node selector and the events of the DaemonSet"},
		"waits for a node":    {[]corev1.Pod{daemon("a", "", corev1.ConditionFalse)}, nil, "pod a is on no node"},
		"not ready":           {[]corev1.Pod{daemon("a", "n1", corev1.ConditionFalse)}, []resourceapi.ResourceSlice{slice("n1", 1, 1)}, "node n1: the daemon in pod a is not ready"},
		"no conditions":       {[]corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{NodeName: "n1"}}}, nil, "node n1: the daemon in pod a is not ready"},
		"no slices":           {[]corev1.Pod{daemon("a", "n1", corev1.ConditionTrue)}, nil, "node n1: the API server does not have all ResourceSlices of the node"},
		"slices of another":   {[]corev1.Pod{daemon("a", "n1", corev1.ConditionTrue)}, []resourceapi.ResourceSlice{slice("n2", 1, 1)}, "node n1: the API server does not have all ResourceSlices of the node"},
		"a slice is missing":  {[]corev1.Pod{daemon("a", "n1", corev1.ConditionTrue)}, []resourceapi.ResourceSlice{slice("n1", 2, 2), slice("n1", 1, 2)}, "node n1: the API server does not have all ResourceSlices of the node"},
		"old slices are gone": {[]corev1.Pod{daemon("a", "n1", corev1.ConditionTrue)}, []resourceapi.ResourceSlice{slice("n1", 2, 1), slice("n1", 1, 3)}, ""},
	} {
		if got := strings.Join(Unready(row.pods, row.slices), "\n"); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
