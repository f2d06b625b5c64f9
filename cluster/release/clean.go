package release

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Unclean returns why the DaemonSet that cleans nodes has not done so on each node, one line
// for each pod, sorted. The pods are those of the DaemonSet.
func Unclean(cleaners *appsv1.DaemonSet, pods []corev1.Pod) (problems []string) {
	status := &cleaners.Status
	if status.ObservedGeneration < cleaners.Generation {
		return []string{"the controller has not seen the DaemonSet yet"}
	}
	if status.NumberReady == status.DesiredNumberScheduled {
		return nil
	}
	for i := range pods {
		if pod := &pods[i]; pod.DeletionTimestamp == nil && !isReady(pod) {
			problems = append(problems, fmt.Sprintf("node %s is not clean: see the log of pod %s", pod.Spec.NodeName, pod.Name))
		}
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		problems = []string{fmt.Sprintf("%d of %d nodes are clean", status.NumberReady, status.DesiredNumberScheduled)}
	}
	return problems
}
