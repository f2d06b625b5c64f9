package cdi

import (
	"fmt"
	"slices"
	"strconv"

	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Cache is a share of a level-3 cache. The kernel gives its ways to all tasks on the
// claim's CPUs, so no hook runs for it.
type Cache struct {
	L3 int // id of the cache
}

func (c *Cache) edits(Claim, Hook) specs.ContainerEdits { return specs.ContainerEdits{} }

func (c *Cache) validate() error {
	if c.L3 < 0 {
		return fmt.Errorf("level-3 cache %d: want an id from 0", c.L3)
	}
	return nil
}

func (c *Cache) addTo(all *content) {
	if id := strconv.Itoa(c.L3); !slices.Contains(all.caches, id) {
		all.caches = append(all.caches, id)
	}
}
