package kubeletplugin

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// collect deletes the slices, as the garbage collector does once their Node is gone.
func (c *cluster) collect(t *testing.T) {
	t.Helper()
	list, err := c.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, slice := range list.Items {
		if err := c.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// The helper would create slices that name the former Node, and they would be deleted again.
func TestNodeThatIsRegisteredAgainEndsTheDaemon(t *testing.T) {
	for name, again := range map[string]bool{"deleted": false, "registered again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				var ends []error
				c.fatal = func(err error) { ends = append(ends, err) }
				startReady(t, c)
				nodes := c.CoreV1().Nodes()
				if err := nodes.Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				if again {
					if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "new"}}, metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				before := c.stored()
				c.collect(t)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if writes := c.stored() - before; len(ends) == 0 || !strings.Contains(ends[0].Error(), "node node-1 was deleted") || writes > 0 {
					t.Errorf("the daemon ends with %v after %d writes, want that the Node was deleted, after none", ends, writes)
				}
			})
		})
	}
}

// A daemon that has published nothing asks no more than the helper, which asks then.
func TestNodeIsReadOnceAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		first := startReady(t, c)
		first.cancel()
		first.running.Wait()
		p := startReady(t, c)
		c.ClearActions()
		c.collect(t)
		time.Sleep(5 * time.Second)
		waitReady(t, p, time.Second)
		if read := verbs(c.Clientset)["get"]; read != 1 {
			t.Errorf("the Node was read %d times, want once", read)
		}
	})
}

// From then on, the daemon asks whether it is still the same.
func TestNodeIsReadWhenSlicesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		asked := func() int { return verbs(c.Clientset)["get"] }
		for deletions, want := range []int{1, 2, 3} {
			if deletions > 0 {
				c.collect(t)
				time.Sleep(5 * time.Second)
			}
			waitReady(t, p, time.Second)
			if got := asked(); got != want {
				t.Errorf("after %d deletions the Node was read %d times, want %d", deletions, got, want)
			}
		}
		c.late.Store(int64(10 * time.Second))
		c.collect(t)
		time.Sleep(15 * time.Second)
		waitReady(t, p, time.Second)
		if got := asked(); got != 4 {
			t.Errorf("while slices come late the Node was read %d times, want once", got-3)
		}
	})
}

func TestNoSlicesWhileTheNodeIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		p := startReady(t, c)
		var away atomic.Bool
		away.Store(true)
		refuse(c.Clientset, "get", "nodes", func(string) error {
			if away.Load() {
				return errors.New("connection refused")
			}
			return nil
		})
		c.collect(t)
		time.Sleep(5 * time.Second)
		if len(devicesOf(t, c)) > 0 {
			t.Error("slices were published for a Node that may be another one")
		}
		away.Store(false)
		waitReady(t, p, 20*time.Second)
	})
}
