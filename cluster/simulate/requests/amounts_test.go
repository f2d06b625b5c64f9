package requests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A pod that is being resized takes the largest of what it requests, has been allocated,
// and runs with. An infeasible request takes nothing (KEP-1287).
func TestRunningWhileAPodIsResized(t *testing.T) {
	cpus := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	for what, row := range map[string]struct {
		requests, allocated, runs, reason string
		want                              int64
	}{
		"no resize":  {"4", "4", "4", "", 4000},
		"grows":      {"6", "6", "4", "", 6000},
		"shrinks":    {"2", "2", "4", "", 4000},
		"deferred":   {"6", "4", "4", corev1.PodReasonDeferred, 6000},
		"infeasible": {"99", "4", "4", corev1.PodReasonInfeasible, 4000},
	} {
		pod := &corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: cpus(row.requests)}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "a", AllocatedResources: cpus(row.allocated), Resources: &corev1.ResourceRequirements{Requests: cpus(row.runs)},
		}}
		if row.reason != "" {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: row.reason}}
		}
		if got := Running(pod, false)[corev1.ResourceCPU]; got != row.want {
			t.Errorf("%s: takes %d thousandths of a CPU, want %d", what, got, row.want)
		}
	}
}
