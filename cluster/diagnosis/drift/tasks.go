package drift

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// compareTasks reports tasks of containers that do not use the ways of their claim, because
// they are in another group of resctrl. A task in the default group uses the ways of its
// CPU. That is enough unless the containers of the claim join its group.
func (c *comparison) compareTasks() {
	for i := range c.state.Checkpoint.Grants {
		grant := &c.state.Checkpoint.Grants[i]
		claim := c.objects.claims[grant.UID]
		for _, share := range grant.Shares {
			cache := share.Cache()
			if claim == nil || cache == nil {
				continue
			}
			joined := grant.JoinedGroup(share)
			request := resourceclaim.BaseRequestRef(cache.CPUs)
			if joined != "" {
				request = resourceclaim.BaseRequestRef(share.Request)
			}
			for _, container := range c.containers(claim, request) {
				c.compareTasksOf(grant, container, cache.GroupName(), joined != "")
			}
		}
	}
}

// compareTasksOf compares the tasks of one container with the group of a claim.
func (c *comparison) compareTasksOf(grant *ledger.Grant, container runningContainer, group string, joined bool) {
	for _, tasks := range c.state.Tasks {
		if !container.has(tasks.Cgroup) || tasks.Group == group || tasks.Group == "" && !joined {
			continue
		}
		expected, detected := "tasks in group "+group, fmt.Sprintf("%d in group %s", tasks.Tasks, tasks.Group)
		if !joined {
			expected += ", or in none"
		}
		if tasks.Group == "" {
			detected = fmt.Sprintf("%d in no group", tasks.Tasks)
		}
		c.add(Finding{
			Check: TaskInOtherGroup, Claim: grant.Namespace + "/" + grant.Name, CPUs: cpus(*grant),
			Where: "container " + container.name + " of pod " + container.pod, Expected: expected, Detected: detected,
		})
	}
}

// runningContainer is a container that runs on the node.
type runningContainer struct {
	pod  string // namespace/name
	name string
	id   string // without the name of the runtime
}

// has reports whether a cgroup is that of the container, or below it. Its name is the id of
// the container, or with systemd cri-containerd-<id>.scope.
func (r runningContainer) has(cgroup string) bool {
	return slices.ContainsFunc(strings.Split(cgroup, "/"), func(name string) bool {
		return name == r.id || strings.HasSuffix(name, "-"+r.id+".scope")
	})
}

// containers returns the running containers on the node that use a request of a claim.
func (c *comparison) containers(claim *resourceapi.ResourceClaim, request string) (list []runningContainer) {
	for _, user := range claim.Status.ReservedFor {
		pod := c.objects.pod(claim.Namespace, user.Name)
		if user.APIGroup != "" || user.Resource != "pods" || pod == nil || pod.UID != user.UID || pod.Spec.NodeName != c.node {
			continue
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			_, id, found := strings.Cut(status.ContainerID, "://")
			if found && status.State.Running != nil && uses(pod, status.Name, claim.Name, request) {
				list = append(list, runningContainer{pod.Namespace + "/" + pod.Name, status.Name, id})
			}
		}
	}
	return list
}

// uses reports whether a container of a pod uses a request of a claim.
func uses(pod *corev1.Pod, container, claim, request string) bool {
	entries := entriesFor(pod, claim)
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(of corev1.Container) bool {
		return of.Name == container && slices.ContainsFunc(of.Resources.Claims, func(ref corev1.ResourceClaim) bool {
			return entries[ref.Name] && (ref.Request == "" || ref.Request == request)
		})
	})
}
