package driver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
)

// The containers of a mixed claim also run on CPUs that do not have the claim's ways. So
// they join the group of resctrl, which then counts for them on every CPU.

// joins reports whether containers join the group of a share of a cache.
func (g *Grant) joins(cache *CacheShare) bool {
	return slices.ContainsFunc(g.Shares, func(share Share) bool {
		zone := share.Zone()
		return share.Request == cache.CPUs && zone != nil && zone.Mixed
	})
}

// JoinedGroup returns the group of resctrl that containers with a share of the grant join;
// empty for none.
func (g *Grant) JoinedGroup(share Share) string {
	if cache := share.Cache(); cache != nil && g.joins(cache) {
		return cache.GroupName()
	}
	return ""
}

// Spec returns a share of the grant for the CDI spec, on a node with that exclusivity.
func (g *Grant) Spec(share Share, by Exclusivity) cdi.Share {
	spec := share.Spec(by)
	if cache, isCache := spec.Kind.(*cdi.Cache); isCache {
		cache.Group = g.JoinedGroup(share)
	}
	return spec
}

// checkJoined refuses a grant with which a container would have to join two groups: a
// task has only one.
func (d *Driver) checkJoined(grant Grant, pods []*corev1.Pod) error {
	grants := append(d.neighbours(grant, pods), grant)
	for _, pod := range pods {
		names := claimNames(pod)
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			var groups []string
			for _, ref := range container.Resources.Claims {
				for i := range grants {
					if grants[i].Name == names[ref.Name] {
						groups = append(groups, grants[i].joinedBy(ref.Request)...)
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

// joinedBy returns the groups that a container joins that uses a request of the grant, or
// all of them.
func (g *Grant) joinedBy(request string) (groups []string) {
	for _, share := range g.Shares {
		main, _, _ := strings.Cut(share.Request, "/")
		if group := g.JoinedGroup(share); group != "" && (request == "" || request == main) {
			groups = append(groups, group)
		}
	}
	return groups
}
