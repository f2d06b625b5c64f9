package pin

import (
	"maps"
	"testing"
)

// A record that gives nothing changes nothing in the kernel, is no fault, and goes with its
// container.
func TestUseIsARecordThatGivesNothing(t *testing.T) {
	f := newFake(t, false)
	running(f, ctrA, ctrB)
	wrote := 0
	f.root.around = func(w Write, effect func() error) error {
		if w.File != (record{Cgroup: ctrA}).file() {
			wrote++
		}
		return f.around(w, effect)
	}
	for range 2 {
		if err := Use(f.host(), ctrA, ClaimRef{"uid-a", "default/a"}); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func() map[string]string {
		t.Helper()
		claims, err := Recorded(f.host().Cgroups.FS(), f.host().Records.FS())
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	if got, want := recorded(), map[string]string{"uid-a": ctrA}; !maps.Equal(got, want) || wrote > 0 {
		t.Errorf("recorded %v, want %v; %d writes to the kernel", got, want, wrote)
	}
	if live, err := Inspect(f.host().Cgroups.FS(), f.host().Records.FS()); err != nil || len(live) > 0 {
		t.Errorf("inspect: %+v, %v, want nothing that could be at fault", live, err)
	}
	// A claim of the same container that gives CPUs, and one of another with none of them.
	mustPin(f, ctrA, ScopeContainer, claimed("b", "2-3", "", PartitionRoot))
	if err := Use(f.host(), ctrA, ClaimRef{"uid-c", "default/c"}); err != nil {
		t.Fatal(err)
	}
	if live, err := Inspect(f.host().Cgroups.FS(), f.host().Records.FS()); err != nil || len(live) != 1 || live[0].Fault != "" || len(live[0].Claims) != 3 {
		t.Errorf("inspect: %+v, %v, want one sound cgroup of three claims", live, err)
	}
	f.end(ctrA)
	mustPin(f, ctrB, ScopeContainer, claimed("d", "2-3", "", PartitionRoot))
	if got := recorded(); got["uid-a"] != "" || got["uid-c"] != "" {
		t.Errorf("recorded %v after the container has ended", got)
	}
	if list, _, err := loadRecords(f.host().Records.FS()); err != nil || len(list) != 1 {
		t.Errorf("records %+v, %v, want that of the other container", list, err)
	}
	if err := Use(f.host(), "../x", ClaimRef{"uid-a", "default/a"}); err == nil {
		t.Error("a path that is none: no error")
	}
}
