// Package release says of the objects of a cluster whether an installed release of the
// driver works, and whether it may be removed. It decides; the caller reads the objects,
// waits and removes.
package release

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Unready returns why a release does not work yet, one line for each pod, sorted: a daemon
// is not ready, or its node has not published all of its devices. The pods are those of the
// daemon, the slices those of the driver.
func Unready(pods []corev1.Pod, all []resourceapi.ResourceSlice) (problems []string) {
	published := make(map[string][]resourceapi.ResourceSlice)
	for _, slice := range all {
		if node := slice.Spec.NodeName; node != nil {
			published[*node] = append(published[*node], slice)
		}
	}
	daemons := 0
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		daemons++
		switch {
		case pod.Spec.NodeName == "":
			problems = append(problems, fmt.Sprintf("pod %s is on no node", pod.Name))
		case !isReady(pod):
			problems = append(problems, fmt.Sprintf("node %s: the daemon in pod %s is not ready", pod.Spec.NodeName, pod.Name))
		case !isComplete(published[pod.Spec.NodeName]):
			problems = append(problems, fmt.Sprintf("node %s: the API server does not have all ResourceSlices of the node", pod.Spec.NodeName))
		}
	}
	if daemons == 0 {
		problems = append(problems, "no daemon runs: look at the node selector and the events of the DaemonSet")
	}
	slices.Sort(problems)
	return problems
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isComplete is whether a pool has as many slices of its newest generation as they say.
func isComplete(pool []resourceapi.ResourceSlice) bool {
	newest, count := int64(-1), int64(0)
	wanted := int64(0)
	for _, slice := range pool {
		if slice.Spec.Pool.Generation > newest {
			newest, count = slice.Spec.Pool.Generation, 0
		}
		if slice.Spec.Pool.Generation == newest {
			count, wanted = count+1, slice.Spec.Pool.ResourceSliceCount
		}
	}
	return count > 0 && count == wanted
}
