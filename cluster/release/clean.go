package release

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// UncleanNode is a node that is not clean yet, and the pod that cleans it.
type UncleanNode struct{ Node, Pod string }

// Unclean returns why the DaemonSet that cleans nodes has not done so on each node, one line
// for each pod, sorted, and these nodes. The pods are those of the DaemonSet.
func Unclean(cleaners *appsv1.DaemonSet, pods []corev1.Pod) (problems []string, unclean []UncleanNode) {
	status := &cleaners.Status
	if status.ObservedGeneration < cleaners.Generation {
		return []string{"the controller has not seen the DaemonSet yet"}, nil
	}
	if status.NumberReady == status.DesiredNumberScheduled {
		return nil, nil
	}
	for i := range pods {
		if pod := &pods[i]; pod.DeletionTimestamp == nil && !isReady(pod) {
			unclean = append(unclean, UncleanNode{pod.Spec.NodeName, pod.Name})
			problems = append(problems, fmt.Sprintf("node %s is not clean", pod.Spec.NodeName))
		}
	}
	slices.Sort(problems)
	if len(problems) == 0 {
		problems = []string{fmt.Sprintf("%d of %d nodes are clean", status.NumberReady, status.DesiredNumberScheduled)}
	}
	return problems, unclean
}
