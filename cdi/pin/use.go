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
	r, known, err := h.useOf(container, claim)
	if err != nil || known {
		return err
	}
	return h.save(r)
}

// useOf returns the record of a container, with the claim. It is known if the record has the
// claim already.
func (h Host) useOf(container string, claim ClaimRef) (r record, known bool, err error) {
	if !fs.ValidPath(container) || container == "." {
		return record{}, false, fmt.Errorf("cgroup %q: want a path below the cgroup mount", container)
	}
	list, _, err := loadRecords(h.Records.FS()) // the keeper reports damaged records
	if err != nil {
		return record{}, false, err
	}
	fresh := record{Boot: h.Boot, Cgroup: container, Scope: ScopeContainer, Claims: nil}
	for _, r := range list {
		switch {
		case r.Boot != h.Boot: // dead
		case r.Cgroup == container && r.Scope == ScopeContainer:
			fresh = r
		case r.file() == fresh.file():
			return record{}, false, fmt.Errorf("record %s belongs to cgroup %s: %w", r.file(), r.Cgroup, ErrInUse)
		}
	}
	if slices.ContainsFunc(fresh.Claims, func(c Claim) bool { return c.UID == claim.UID }) {
		return fresh, true, nil
	}
	return fresh.with(Claim{ClaimRef: claim}), false, nil
}
