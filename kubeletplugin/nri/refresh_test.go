package nri

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

func TestRefreshNarrowsAndWidensThePool(t *testing.T) {
	core := &fakeCore{}
	r, p := connected(t, core)
	r.create("x")
	r.create("y")
	refresh(t, p)
	wantState(t, r, map[string]string{"x": "/", "y": "/"})

	core.hold(map[string]driver.Pinned{"a": claimA})
	refresh(t, p)
	wantState(t, r, map[string]string{"x": "0-1,4-7/", "y": "0-1,4-7/"})
	r.create("claim", "a")
	refresh(t, p)

	core.hold(map[string]driver.Pinned{"a": claimA, "b": claimB})
	refresh(t, p)
	wantState(t, r, map[string]string{"x": "0-1/", "y": "0-1/", "claim": "2-3/0"})

	r.stop("claim")
	core.hold(nil)
	refresh(t, p)
	refresh(t, p)
	r.create("new")
	refresh(t, p)
	wantState(t, r, map[string]string{"x": "0-7/", "y": "0-7/", "new": "/"})
	if got, want := strings.Join(r.sent(), "; "), "x y; x y; x y"; got != want {
		t.Errorf("asked for updates of %q, want %q", got, want)
	}
	if got := p.Updates(); got != 6 {
		t.Errorf("%d updates counted, want 6", got)
	}
}

// Mixed containers run on the pool too, and follow it.
func TestRefreshMovesMixedContainers(t *testing.T) {
	mixed := claimA
	mixed.Mixed = true
	core := coreWith(map[string]driver.Pinned{"a": mixed})
	r, p := connected(t, core)
	r.create("mixed", "a")
	wantState(t, r, map[string]string{"mixed": "0-7/0"})
	core.hold(map[string]driver.Pinned{"a": mixed, "b": claimB})
	refresh(t, p)
	wantState(t, r, map[string]string{"mixed": "0-3/0"})
}

// withOlder connects a runtime whose containers are older than claim a.
func withOlder(t *testing.T, containers ...string) (*fakeRuntime, *Plugin) {
	t.Helper()
	core := &fakeCore{}
	r, p := connected(t, core)
	for _, id := range containers {
		r.create(id)
	}
	settle(t, p)
	core.hold(map[string]driver.Pinned{"a": claimA})
	return r, p
}

func TestContainersThatEndAreForgotten(t *testing.T) {
	r, p := withOlder(t, "gone", "here")
	r.stop("gone")
	refresh(t, p)
	if got := strings.Join(r.sent(), "; "); got != "here" {
		t.Errorf("asked for updates of %q, want only the one that is here", got)
	}
}

// Between its answer and the end of a creation the runtime has no container that
// it could update, and says nothing of that.
func TestClaimPreparedWhileAContainerIsCreated(t *testing.T) {
	core := coreWith(map[string]driver.Pinned{"a": claimA})
	r, p := connected(t, core)
	c := containerMessage("between")
	if _, err := r.adjusted(c); err != nil {
		t.Fatal(err)
	}
	core.hold(map[string]driver.Pinned{"a": claimA, "b": claimB})
	refresh(t, p)
	r.add(c)
	eventually(t, "on the new pool", func() bool { return r.state()["between"] == "0-1/" })
}

// What failed goes again, each by itself, since the runtime does not say which it was.
func TestFailedUpdatesAreRepeated(t *testing.T) {
	r, p := withOlder(t, "bad", "good")
	r.set(func() { r.broken["bad"] = true })
	err := p.Refresh(t.Context())
	if err == nil || !strings.Contains(err.Error(), ", in a call for 2: ") || !strings.Contains(err.Error(), "NRI update of some containers failed") {
		t.Errorf("error %v, want the runtime's for two containers", err)
	}
	if err = p.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "update container bad: ") {
		t.Errorf("error %v, want that container bad failed", err)
	}
	wantState(t, r, map[string]string{"bad": "/", "good": "0-1,4-7/"})
	r.set(func() { r.broken["bad"] = false })
	eventually(t, "repeated by itself", func() bool { return r.state()["bad"] == "0-1,4-7/" })
	refresh(t, p)
	sent := r.sent()
	if len(sent) < 4 || sent[0] != "bad good" || len(sent[1])+len(sent[2]) != len("bad"+"good") || sent[3] != "bad" {
		t.Errorf("asked for updates of %q, want both, each, then bad alone", sent)
	}
}

// The kubelet's change and ours may be carried out in any order.
func TestUpdateThatMeetsAnotherIsRepeated(t *testing.T) {
	r, p := withOlder(t, "c")
	answer, release := heldRefresh(t.Context(), r, p)
	p.mu.Lock() // the kubelet's change is noted while ours is under way
	p.containers["c"] = newContainer(withCPUs(containerMessage("c"), "7", ""))
	p.mu.Unlock()
	release()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	refresh(t, p)
	if got := strings.Join(r.sent(), "; "); got != "c; c" {
		t.Errorf("asked for updates of %q, want c twice", got)
	}
}

func TestRefreshIsBoundedByItsContext(t *testing.T) {
	r, p := withOlder(t, "c")
	ctx, cancel := context.WithCancel(t.Context())
	answer, release := heldRefresh(ctx, r, p)
	cancel()
	if err := <-answer; err == nil || err.Error() != "update containers: context canceled" {
		t.Errorf("error %v of an update that takes longer than its context", err)
	}
	if err := p.Refresh(ctx); err == nil || err.Error() != "wait for another update of containers: context canceled" {
		t.Errorf("error %v of an update that waits longer than its context", err)
	}
	release()
	refresh(t, p) // and the first was not in vain
	if got := strings.Join(r.sent(), "; "); got != "c" {
		t.Errorf("asked for updates of %q, want c once", got)
	}
}

func TestRefreshWithoutRuntime(t *testing.T) {
	p := New(Options{Socket: "/nowhere", Core: &fakeCore{}})
	if err := p.Refresh(t.Context()); !errors.Is(err, ErrNotConnected) {
		t.Errorf("error %v, want %v", err, ErrNotConnected)
	}
}
