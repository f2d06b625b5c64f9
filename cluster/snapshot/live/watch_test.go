package live

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	core "k8s.io/client-go/testing"
)

// The copy follows objects that are created and deleted.
func TestWatchKeepsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := cluster()
	w, err := Source{client}.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); w.Stop() }()
	first, err := w.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Nodes) != 1 || len(first.Classes) != 1 || len(first.Slices) != 1 || len(first.Claims) != 1 || len(first.Templates) != 1 ||
		len(first.TaintRules) != 1 || len(first.Pods) != 5 || first.Pods[0].Name != "important" {
		t.Fatalf("the first snapshot is %+v", first)
	}
	if fields := first.Slices[0].ManagedFields; fields != nil {
		t.Errorf("slices have managed fields %v", fields)
	}
	claims := client.ResourceV1().ResourceClaims("team")
	for name, change := range map[string]func() error{
		"made": func() error {
			_, err := claims.Create(ctx, &resourceapi.ResourceClaim{ObjectMeta: named("new")}, metav1.CreateOptions{})
			return err
		},
		"gone": func() error { return claims.Delete(ctx, "claim", metav1.DeleteOptions{}) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for {
			select {
			case <-w.Changes():
			case <-time.After(time.Minute):
				t.Fatalf("a claim is %s, and nothing has changed", name)
			}
			now, err := w.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			has := func(name string) bool {
				return slices.ContainsFunc(now.Claims, func(c *resourceapi.ResourceClaim) bool { return c.Name == name })
			}
			if name == "made" && has("new") || name == "gone" && !has("claim") {
				break
			}
		}
	}
}

func TestWatchFollowsTaintRulesInTheVersionThatIsServed(t *testing.T) {
	for _, row := range lacks() {
		ctx, cancel := context.WithCancel(t.Context())
		client := olderRules(t)
		without(client, row.versions...)
		w, err := Source{client}.Watch(ctx)
		if err != nil {
			t.Fatal(err)
		}
		now, err := w.Snapshot(ctx)
		if err != nil || len(now.Slices) != 1 || now.RuleVersion != row.version || strings.Join(bareNames(t, now.TaintRules), " ") != row.rule {
			t.Errorf("without %q: %+v, %v", row.versions, now, err)
		}
		cancel()
		w.Stop()
	}
}

func TestWatchThatIsRefusedIsAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	client := cluster()
	client.PrependWatchReactor("nodes", func(core.Action) (bool, apiwatch.Interface, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil)
	})
	w, err := Source{client}.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); w.Stop() }()
	select {
	case err := <-w.Failures():
		if !apierrors.IsForbidden(err) {
			t.Errorf("failure %v, want that it is forbidden", err)
		}
	case <-time.After(time.Minute):
		t.Error("nodes cannot be watched, and there is no failure")
	}
}

// A user who ends a watch is not told of a request that was under way.
func TestWatchThatEndsIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &Watcher{failures: make(chan error, 1)}
	w.fail(ctx, nil, context.Canceled)
	if len(w.failures) > 0 {
		t.Errorf("failure %v", <-w.failures)
	}
}
