package pin

import (
	"fmt"
	"io/fs"
	"slices"
)

// Use records that a container uses a claim that gives its cgroup nothing, and changes
// nothing in the kernel. The record lives as long as the container. What else the claim holds
// is not given to another one meanwhile. The container is the path of its cgroup, as in [Pin].
// Callers hold the host's [Lock].
func Use(h Host, container string, claim ClaimRef) error {
	if !fs.ValidPath(container) || container == "." {
		return fmt.Errorf("cgroup %q: want a path below the cgroup mount", container)
	}
	list, _, err := loadRecords(h.Records.FS()) // the keeper reports damaged records
	if err != nil {
		return err
	}
	fresh := record{h.Boot, container, ScopeContainer, nil}
	for _, r := range list {
		switch {
		case r.Boot != h.Boot: // dead
		case r.Cgroup == container && r.Scope == ScopeContainer:
			fresh = r
		case r.file() == fresh.file():
			return fmt.Errorf("record %s belongs to cgroup %s: %w", r.file(), r.Cgroup, ErrInUse)
		}
	}
	if slices.ContainsFunc(fresh.Claims, func(c Claim) bool { return c.UID == claim.UID }) {
		return nil
	}
	return h.save(fresh.with(Claim{ClaimRef: claim}))
}
