package pin

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// The plan that is printed is the plan that runs.
func TestPreviewIsWhatPinWrites(t *testing.T) {
	const other, next = podB + "/main", podB + "/next"
	eachFake(t, func(m machine) {
		check := func(container string, scope Scope, claim Claim) {
			m.Helper()
			h := m.host()
			plan, err := Preview(h.Cgroups.FS(), h.Records.FS(), h.Boot, container, scope, claim)
			if err != nil {
				m.Fatal(err)
			}
			var made []Write
			around := h.around
			h.around = func(w Write, effect func() error) error {
				if name := path.Base(w.File); strings.HasPrefix(name, "cpuset.") || name == quotaFile {
					made = append(made, w)
				}
				return around(w, effect)
			}
			if err := Pin(h, container, scope, claim); err != nil {
				m.Fatal(err)
			}
			if !slices.Equal(plan.Writes, made) {
				m.Errorf("pin %s to %s: it says\n%sand does\n%s", container, claim.Pinning, plan, Plan{Writes: made})
			}
		}
		for _, container := range []string{pauseA, sidecarA, other, next} {
			m.create(container)
			m.start(container)
		}
		check(pauseA, ScopePod, claimed("u1", "4-5", "1", PartitionRoot))
		check(sidecarA, ScopePod, claimed("u1", "4-5", "1", PartitionRoot))
		check(sidecarA, ScopePod, claimed("u1", "4-5", "1", PartitionRoot)) // nothing is left to do
		limit(m, map[string]string{other: "200000 100000", podB: "200000 100000"})
		check(other, ScopeContainer, liftable(claimed("u2", "6-7", "", PartitionIsolated)))
		check(other, ScopeContainer, liftable(claimed("u2", "10", "", PartitionIsolated))) // with which the quota limits again
		m.end(other)
		check(next, ScopeContainer, claimed("u3", "8-9", "", PartitionRoot)) // after what is left of the dead container
		checkEmptied(m)
	})
}

// Nothing is planned for a claim that Pin refuses.
func TestPreviewRefusesAsPin(t *testing.T) {
	eachFake(t, func(m machine) {
		for _, container := range []string{pauseA, sidecarA} {
			m.create(container)
			m.start(container)
		}
		mustPin(m, pauseA, ScopeContainer, claimed("u1", "4-5", "", PartitionRoot))
		h, claim := m.host(), claimed("u2", "5-6", "", PartitionRoot)
		plan, err := Preview(h.Cgroups.FS(), h.Records.FS(), h.Boot, sidecarA, ScopeContainer, claim)
		if refused := Pin(h, sidecarA, ScopeContainer, claim); err == nil || refused == nil || err.Error() != refused.Error() {
			m.Errorf("it says %v and %q, and does %v", err, plan, refused)
		}
	})
}
