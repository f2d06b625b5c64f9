package cdi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Cache is a share of a level-3 cache. The kernel gives its ways to all tasks on the
// claim's CPUs, so nothing is done for a container that runs only there.
type Cache struct {
	L3 int // id of the cache

	// Group is the group of resctrl that the runtime puts the container into, because the
	// container also runs on CPUs that do not have the ways; empty for none. A container
	// has only the group of its last CDI device with one.
	Group string
}

// edits makes the runtime put the container into the group, and runs the hook that reads
// back whether it did: an OCI runtime that does not know closID ignores it.
func (c *Cache) edits(claim Claim, hook Hook) specs.ContainerEdits {
	if c.Group == "" {
		return specs.ContainerEdits{}
	}
	return specs.ContainerEdits{
		IntelRdt: &specs.IntelRdt{ClosID: c.Group},
		Hooks: []*specs.Hook{{
			HookName: "createRuntime",
			Path:     hook.Path,
			Args: []string{
				"numa-pin", "joined",
				"--uid=" + claim.UID,
				"--claim=" + claim.Namespace + "/" + claim.Name,
				"--group=" + c.Group,
				"--lock=" + hook.LockFile(),
				"--records=" + hook.RecordsDir(),
			},
		}},
	}
}

var groupName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

func (c *Cache) validate() error {
	if c.L3 < 0 {
		return fmt.Errorf("level-3 cache %d: want an id from 0", c.L3)
	}
	if c.Group != "" && !groupName.MatchString(c.Group) {
		return fmt.Errorf("group %q of level-3 cache %d: want lower-case letters, digits, dots and dashes", c.Group, c.L3)
	}
	return nil
}

func (c *Cache) addTo(all *content) {
	if id := strconv.Itoa(c.L3); !slices.Contains(all.caches, id) {
		all.caches = append(all.caches, id)
	}
}
