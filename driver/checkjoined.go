package driver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// checkJoined refuses a grant with which a container would have to join two groups: a
// task has only one.
func (p *planner) checkJoined(grant ledger.Grant, pods []*corev1.Pod) error {
	grants := append(p.neighbours(grant, pods), grant)
	for _, pod := range pods {
		names := ledger.ClaimNames(pod)
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			var groups []string
			for _, ref := range container.Resources.Claims {
				for i := range grants {
					if grants[i].Name == names[ref.Name] {
						groups = append(groups, grants[i].JoinedBy(ref.Request)...)
					}
				}
			}
			slices.Sort(groups)
			if groups = slices.Compact(groups); len(groups) > 1 {
				return fmt.Errorf("container %s of pod %s would have the ways of %s: a container can have those of one mixed claim only", container.Name, pod.Name, strings.Join(groups, " and "))
			}
		}
	}
	return nil
}
