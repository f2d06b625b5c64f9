package driver

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// SetMemoryPolicies takes a function that says why the container runtime does not set memory
// policies, and returns nil if it does. As long as it does not, claims that ask for one are
// not prepared, except those that are already. Without the function, all are.
func (d *Driver) SetMemoryPolicies(missing func() error) { d.policies.Store(&missing) }

// checkPolicies refuses a new claim whose containers would start without the memory policy
// that it asks for.
func (p *planner) checkPolicies(claim types.UID, wishes []wish) error {
	missing := p.policies
	if _, held := p.grants.Find(claim); held || missing == nil {
		return nil
	}
	for _, wish := range pinned(wishes) {
		zone, is := wish.wanted.(zoneWish)
		if !is || zone.config.MemoryPolicy == "" {
			continue
		}
		if err := missing(); err != nil {
			return fmt.Errorf("request %s: memoryPolicy %s: %w", wish.request, zone.config.MemoryPolicy, err)
		}
	}
	return nil
}
