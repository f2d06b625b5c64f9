package ledger

import (
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
)

// The containers of a mixed claim also run on CPUs that do not have the claim's ways. So
// they join the group of resctrl, which then counts for them on every CPU.

// Joins reports whether containers join the group of a share of a cache.
func (g *Grant) Joins(cache *CacheShare) bool {
	return slices.ContainsFunc(g.Shares, func(share Share) bool {
		zone := share.Zone()
		return share.Request == cache.CPUs && zone != nil && zone.Mixed
	})
}

// JoinedGroup returns the group of resctrl that containers with a share of the grant join;
// empty for none.
func (g *Grant) JoinedGroup(share Share) string {
	if cache := share.Cache(); cache != nil && g.Joins(cache) {
		return cache.GroupName()
	}
	return ""
}

// Spec returns a share of the grant for the CDI spec, on a node that makes partitions or
// does not.
func (g *Grant) Spec(share Share, partitions bool) cdi.Share {
	spec := share.Spec(partitions)
	if cache, isCache := spec.Kind.(*cdi.Cache); isCache {
		cache.Group = g.JoinedGroup(share)
	}
	return spec
}

// JoinedBy returns the groups that a container joins that uses a request of the grant, or
// all of them.
func (g *Grant) JoinedBy(request string) (groups []string) {
	for _, share := range g.Shares {
		main, _, _ := strings.Cut(share.Request, "/")
		if group := g.JoinedGroup(share); group != "" && (request == "" || request == main) {
			groups = append(groups, group)
		}
	}
	return groups
}
